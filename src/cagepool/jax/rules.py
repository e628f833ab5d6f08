"""One step of a game (docs/rules.md, section 4) without branches, gathers and scatters.

The step is three decisions, each packed in one word that is computed once (`bits.materialize`),
and the updates of the state that follow from them. The order of the rules is that of the core
(cpp/core/step.hpp); quirks of CybORG are named as there.
"""

from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from cagepool.jax import bits
from cagepool.jax import scenario as sc
from cagepool.jax.bits import Flag, HostBytes, Operand, Word, has, only_if, word
from cagepool.jax.draws import NO_HOST, Draws
from cagepool.jax.game import B_LINE, FALSE, GIVEN, MEANDER, NO_PICK, TRUE, UNKNOWN, Game

# Kinds of red's actions, as in the core.
SLEEP_KIND, SWEEP, SCAN, EXPLOIT, ESCALATE, IMPACT = range(6)
# Network events of one agent on one host, as far as the activity depends on them.
NO_EVENT, ONE, TWO_ON_ONE_PORT, BRUTE_FORCE, REVERSE_SHELL, SCAN_1, SCAN_2, SCAN_3 = range(8)
# Kinds of sessions that an exploit opens.
UNSEEN_SESSION, SEEN_SESSION, PRIVILEGED_SESSION = 1, 2, 3
_SSH_RANK, _MAIL_RANK = 0, 6
# Session log, as in the core.
SESSION_ALIVE, SESSION_PRIVILEGED, SESSION_SEEN, SESSION_SSH = 0x10, 0x20, 0x40, 0x80
_SESSION_HOST = 0x0F


class Rules(NamedTuple):
    """What is fixed when the program is traced."""

    reds: tuple[int, ...]  # agents that may play, as indices of the core's enum
    leaderboard: bool  # edition
    green: bool


class BlueMove(NamedTuple):
    """Blue's action and its effect."""

    host: Word
    units: HostBytes  # of the host, see `bits.byte_units`
    placed: Flag  # a decoy
    repeats: Flag  # the decoy stood there already
    removes: Flag
    restores: Flag
    finds_malware: Flag
    rank: Word  # bit of the decoy


class RedMove(NamedTuple):
    """Red's choice, and the plan of B_lineAgent after it."""

    kind: Word
    target: Word  # host; subnet for a sweep; NO_HOST
    units: HostBytes  # of the target
    position: Word
    user_pick: Word
    reached_12: Word


class Outcome(NamedTuple):
    """Effect of red's action."""

    success: Word
    events: Word
    opened: Word  # kind of session; 0: none
    detected: Word  # 0: not drawn, 1: no, 2: yes
    uses_exploit: Flag
    rank: Word  # of the exploit
    escalates: Flag  # a session becomes privileged
    escalated: Flag  # the action succeeds
    stops_service: Flag
    scans: Flag  # the scan reaches the host
    scan_is_empty: Flag
    sweeps: Flag
    listening: Word  # ports that the scan finds


class StepResult(NamedTuple):
    """What a step shows beside the state."""

    blue: BlueMove
    red: RedMove
    outcome: Outcome
    green_host: Word
    penalty: Word  # of this step, in tenths
    esc_pick: Word  # session that was escalated; only with a given red


def play_step(
    rules: Rules, game: Game, action: Word, draws: Draws, given: Word | None = None
) -> tuple[Game, StepResult]:
    """Play one step.

    Args:
        rules: What is fixed when the program is traced.
        game: State before the step.
        action: Blue's action.
        draws: Source of the random draws.
        given: Red's action, if the caller plays red.
    """
    blue = _decide_blue(game, action)
    game = _apply_blue(rules, game, blue)
    green_host, green_events = _green_events(rules, game, draws)
    if MEANDER in rules.reds:
        game = _update_meander(game)
    red = _decide_red(rules, game, draws, given)
    outcome = _red_outcome(rules, game, red, draws)
    game, esc_pick = _apply_red(rules, game, red, outcome, draws)
    game = _observe(game, blue, red, outcome, (green_host, green_events))
    cost = word(blue.restores) * np.uint32(10)
    penalty = _state_penalty(game) + cost
    game = game._replace(
        step=game.step + np.uint32(1),
        penalty=game.penalty + penalty,
        success=outcome.success,
    )
    return game, StepResult(blue, red, outcome, green_host, penalty, esc_pick)


def _pack_fields(*fields: tuple[Word | Flag, int]) -> Word:
    """Pack values with their widths in one word, and compute the word once."""
    packed, shift = word(fields[0][0]), fields[0][1]
    for value, width in fields[1:]:
        packed = packed | (word(value) << shift)
        shift += width
    assert shift <= 31
    return bits.materialize(packed)


def _unpack_fields(packed: Word, *widths: int) -> list[Word]:
    values, shift = [], 0
    for width in widths:
        values.append((packed >> shift) & np.uint32((1 << width) - 1))
        shift += width
    return values


def _nibbles(values: tuple[int, ...]) -> np.uint32:
    return np.uint32(sum(value << (4 * i) for i, value in enumerate(values)))


def _bits_at(positions: tuple[int, ...]) -> np.uint32:
    return np.uint32(sum(1 << position for position in positions))


# Blue


_DECOY_RANK = _nibbles(tuple(bit.bit_length() - 1 for bit in sc.DECOY_BIT))
_FREE_RANK = _nibbles(
    tuple(
        (sc.FTP if decoy == sc.VSFTPD else bit).bit_length() - 1
        for decoy, bit in enumerate(sc.DECOY_BIT)
    )
)


def decode_action(action: Word) -> tuple[Word, Word]:
    """Host of an action, and its group.

    Groups: 0 Analyse, 1 Remove, 2 to 9 decoys, 10 Restore, 11 none. Returns group and host.
    """
    has_host = action >= 2
    index = only_if(has_host, action - np.uint32(2))
    group = (index * np.uint32(79)) >> 10  # index // 13, exact below 143
    return jnp.where(has_host, group, np.uint32(11)), index - group * np.uint32(13)


def open_ports(decoys: Word) -> Word:
    """Ports that a host's decoys open."""
    return (decoys & np.uint32(0xDF)) | ((decoys & np.uint32(0x20)) >> 2)


def decoy_bit(decoy: Operand) -> Operand:
    """Bit of a decoy in the byte of its host."""
    return np.uint32(1) << ((_DECOY_RANK >> (decoy * np.uint32(4))) & np.uint32(7))


def can_place(decoys: Word, host: Operand, decoy: Operand) -> Flag:
    """Whether a decoy fits the host and its port is free."""
    bit = decoy_bit(decoy)
    free_port = np.uint32(1) << ((_FREE_RANK >> (decoy * np.uint32(4))) & np.uint32(7))
    fits = (bits.get_byte(sc.FITTING_DECOYS, host) & bit) != 0
    return fits & ((open_ports(decoys) & free_port) == 0)


def _decide_blue(game: Game, action: Word) -> BlueMove:
    group, host = decode_action(action)
    decoy = (group - np.uint32(2)) & np.uint32(7)
    is_decoy = (group >= 2) & (group <= 9)
    decoys = bits.get_byte(game.decoys, host)
    rank = (_DECOY_RANK >> (decoy * 4)) & np.uint32(7)
    placed = is_decoy & can_place(decoys, host, decoy)
    packed = _pack_fields(
        (host, 4),
        (placed, 1),
        (placed & has(decoys, rank), 1),
        (group == 1, 1),
        (group == 10, 1),
        ((group == 0) & has(game.malware, host), 1),
        (rank, 3),
    )
    host, placed, repeats, removes, restores, finds, rank = _unpack_fields(
        packed, 4, 1, 1, 1, 1, 1, 3
    )
    flags = (placed != 0, repeats != 0, removes != 0, restores != 0, finds != 0)
    return BlueMove(host, bits.byte_units(host), *flags, rank)


def _apply_blue(rules: Rules, game: Game, blue: BlueMove) -> Game:
    host_bit = np.uint32(1) << blue.host
    restored = only_if(blue.restores, host_bit)
    removed = only_if(blue.removes, host_bit)
    believed = game.table_low | game.table_high
    resets_service = blue.restores & (blue.host == sc.OP_SERVER0)
    immune = game.mail_immune
    if rules.leaderboard:  # L2
        immune = immune | (restored >> sc.USER3)
    added = only_if(blue.placed & ~blue.repeats, np.uint32(1) << blue.rank)
    decoys = bits.clear_byte(game.decoys, blue.units, blue.restores)
    repeated = bits.clear_byte(game.repeated_decoys, blue.units, blue.restores)
    can_repeat = blue.repeats & (bits.get_byte(repeated, blue.host) < 255)
    privileged = bits.clear_byte(game.privileged_counts, blue.units, blue.restores)
    seen = bits.clear_byte(game.seen_counts, blue.units, blue.restores | blue.removes)
    game = game._replace(
        privileged=game.privileged & ~(restored & ~sc.mask_of("User0")),
        user_seen=game.user_seen & ~(restored | removed),
        user_unseen=game.user_unseen & ~restored,
        malware=game.malware & ~restored,
        table_low=(game.table_low & ~restored) | (believed & removed),
        table_high=game.table_high & ~(restored | removed),
        outage=only_if(~resets_service, game.outage),
        ot_pid_known=only_if(~resets_service, game.ot_pid_known),  # Q2
        mail_immune=immune,
        decoys=bits.add_byte(decoys, blue.units, added),
        repeated_decoys=bits.add_byte(repeated, blue.units, word(can_repeat)),
        privileged_counts=bits.add_byte(
            privileged, blue.units, word(blue.restores & (blue.host == sc.USER0))
        ),
        seen_counts=seen,
        unseen_counts=bits.clear_byte(game.unseen_counts, blue.units, blue.restores),
    )
    if game.session_log is not None:
        log = game.session_log
        on_host = _is_alive(log, blue.host)
        is_seen = (log & np.uint8(SESSION_PRIVILEGED | SESSION_SEEN)) == SESSION_SEEN
        ends = on_host & (blue.restores | (blue.removes & is_seen))
        log = jnp.where(ends, log & np.uint8(~SESSION_ALIVE & 0xFF), log)
        game = game._replace(session_log=log)
    return game


def _is_alive(log: Word, host: Word) -> Flag:
    """Whether each session of the log is alive and on the host."""
    wanted = host.astype(jnp.uint8) | np.uint8(SESSION_ALIVE)
    return (log & np.uint8(_SESSION_HOST | SESSION_ALIVE)) == wanted


# Green


def _found_ports(decoys: HostBytes, host: Word) -> Word:
    """Exploit ports on which a host listens."""
    return bits.get_byte(sc.LISTENING, host) | open_ports(bits.get_byte(decoys, host))


def _scan_events(listening: Word, host: Word) -> Word:
    others = only_if(has(sc.TWO_OTHER_PORTS, host), np.uint32(2))
    ports = jnp.minimum(bits.count_bits(listening) + others, np.uint32(3))
    return ports + np.uint32(SCAN_1 - 1)


def _green_events(rules: Rules, game: Game, draws: Draws) -> tuple[Word, Word | None]:
    if not rules.green:
        return jnp.full_like(game.step, NO_HOST), None
    host = draws.green_host()
    events = only_if(host != NO_HOST, _scan_events(_found_ports(game.decoys, host), host))
    host, events = _unpack_fields(_pack_fields((host, 4), (events, 3)), 4, 3)
    return host, events


# Red's choice


_Choice: TypeAlias = tuple[Word, Word, Word, Word, Word]  # `RedMove` without units
_NEXT_AFTER_FAILURE = (0, 1, 2, 2, 2, 2, 5, 5, 5, 5, 9, 9, 9, 12, 13)
_FAILURE_TABLES = _nibbles(_NEXT_AFTER_FAILURE[:8]), _nibbles(_NEXT_AFTER_FAILURE[8:])
_SWEEP_POSITIONS = _bits_at((0, 7))
_SCAN_POSITIONS = _bits_at((1, 4, 8, 11))
_EXPLOIT_POSITIONS = _bits_at((2, 5, 9, 12))
_LAST_POSITION = 14


def _choose_b_line(game: Game, target: Word) -> _Choice:
    """Next step of B_lineAgent; `target` is the draw of its user host."""
    old = game.position
    failure = jnp.where(old >= 8, _FAILURE_TABLES[1], _FAILURE_TABLES[0])
    after_failure = (failure >> ((old & 7) * 4)) & np.uint32(15)
    after_success = jnp.minimum(old + np.uint32(1), np.uint32(_LAST_POSITION))
    position = jnp.where(game.success == TRUE, after_success, after_failure)
    is_first_12 = (position == 12) & (game.reached_12 == 0)
    gives_up = is_first_12 & (game.last_scan_empty != 0)
    position = jnp.where(gives_up, np.uint32(1), position)
    reached = game.reached_12 | word(is_first_12 & ~gives_up)
    draws_host = (position == 1) & (game.user_pick == NO_PICK)
    pick = jnp.where(draws_host, target - np.uint32(sc.USER1), game.user_pick)
    kind = jnp.where(position == _LAST_POSITION, np.uint32(IMPACT), np.uint32(ESCALATE))
    kind = jnp.where(has(_EXPLOIT_POSITIONS, position), np.uint32(EXPLOIT), kind)
    kind = jnp.where(has(_SCAN_POSITIONS, position), np.uint32(SCAN), kind)
    kind = jnp.where(has(_SWEEP_POSITIONS, position), np.uint32(SWEEP), kind)
    entry = jnp.where((pick & 3) < 2, np.uint32(sc.ENTERPRISE1), np.uint32(sc.ENTERPRISE0))
    host = jnp.where(position >= 11, np.uint32(sc.OP_SERVER0), np.uint32(sc.ENTERPRISE2))
    host = jnp.where(position <= 6, entry, host)
    host = jnp.where(position <= 3, (pick & 3) + np.uint32(sc.USER1), host)
    host = jnp.where(position == 0, np.uint32(sc.USER_NET), host)
    host = jnp.where(position == 7, np.uint32(sc.ENTERPRISE_NET), host)
    return (kind, host, position, pick, reached)


def _update_meander(game: Game) -> Game:
    """Update the host lists of RedMeanderAgent by the success of its last action."""
    succeeded = game.success == TRUE
    mapped = game.mapped | only_if(succeeded, game.last_exploit)
    failed_exploit = only_if(~succeeded, game.last_exploit)
    operational = game.escalated & sc.OPERATIONAL
    enterprise = game.escalated & sc.ENTERPRISE_SERVERS
    lost = jnp.where(operational != 0, operational, enterprise)
    lost = only_if(failed_exploit != 0, lost)  # Q21
    failed_host = only_if(game.success == FALSE, game.last_host)
    return game._replace(
        mapped=mapped,
        escalated=game.escalated & ~(lost | failed_host),
        exploited=game.exploited & ~(failed_exploit | lost | (failed_host & mapped)),
        last_exploit=jnp.zeros_like(mapped),
        last_host=jnp.zeros_like(mapped),
    )


class _MeanderOptions(NamedTuple):
    nets: Word
    unscanned: Word
    escalatable: Word
    exploitable: Word


def _meander_options(game: Game) -> _MeanderOptions:
    return _MeanderOptions(
        game.known_nets & ~game.swept,
        game.known_ip & ~game.scanned,
        game.known_host & ~game.escalated & (~game.mapped | game.exploited),
        game.known_ip & ~game.exploited,
    )


def _meander_candidates(options: _MeanderOptions) -> Word:
    hosts = jnp.where(options.escalatable != 0, options.escalatable, options.exploitable)
    return jnp.where(options.unscanned != 0, options.unscanned, hosts)


def _choose_meander(game: Game, options: _MeanderOptions, target: Word) -> _Choice:
    nets = options.nets
    net = jnp.where(has(nets, 1), np.uint32(1), np.uint32(2))
    net = jnp.where(has(nets, 0), np.uint32(0), net)
    kind = jnp.where(options.exploitable != 0, np.uint32(EXPLOIT), np.uint32(SLEEP_KIND))
    kind = jnp.where(options.escalatable != 0, np.uint32(ESCALATE), kind)
    kind = jnp.where(options.unscanned != 0, np.uint32(SCAN), kind)
    host = jnp.where(kind == SLEEP_KIND, NO_HOST, target)
    kind = jnp.where(nets != 0, np.uint32(SWEEP), kind)
    host = jnp.where(nets != 0, net, host)
    impacts = has(game.escalated, sc.OP_SERVER0)
    kind = jnp.where(impacts, np.uint32(IMPACT), kind)
    host = jnp.where(impacts, np.uint32(sc.OP_SERVER0), host)
    return (kind, host, game.position, game.user_pick, game.reached_12)


def _decode_given(game: Game, given: Word) -> _Choice:
    """Action of a red that the caller plays; one on an unknown target fails (rules 5)."""
    index = jnp.minimum(given, np.uint32(43)) - np.uint32(4)
    group = (index * np.uint32(79)) >> 10  # index // 13
    kind = jnp.where(given >= 43, np.uint32(IMPACT), group + np.uint32(SCAN))
    target = jnp.where(given >= 43, np.uint32(sc.OP_SERVER0), index - group * np.uint32(13))
    is_sweep = (given >= 1) & (given <= 3)
    kind = jnp.where(is_sweep, np.uint32(SWEEP), kind)
    target = jnp.where(is_sweep, given - np.uint32(1), target)
    kind = jnp.where(given == 0, np.uint32(SLEEP_KIND), kind)
    target = jnp.where(given == 0, NO_HOST, target)
    return (kind, target, game.position, game.user_pick, game.reached_12)


def _decide_red(rules: Rules, game: Game, draws: Draws, given: Word | None) -> RedMove:
    zero = jnp.zeros_like(game.step)
    plan = (game.position, game.user_pick, game.reached_12)
    move: _Choice = (zero + np.uint32(SLEEP_KIND), zero + NO_HOST, *plan)
    moves: dict[int, _Choice] = {}
    candidates = zero + sc.USERS
    if MEANDER in rules.reds:
        options = _meander_options(game)
        listed = _meander_candidates(options)
        only_meander = B_LINE not in rules.reds
        candidates = listed if only_meander else jnp.where(game.red == MEANDER, listed, candidates)
        moves[MEANDER] = _choose_meander(game, options, draws.red_target(candidates))
    if B_LINE in rules.reds:
        moves[B_LINE] = _choose_b_line(game, draws.red_target(candidates))
    if GIVEN in rules.reds:
        assert given is not None
        moves[GIVEN] = _decode_given(game, given)
    for agent, choice in moves.items():
        if len(rules.reds) == 1:
            move = choice
        else:
            plays = game.red == agent
            move = jax.tree.map(lambda a, b, plays=plays: jnp.where(plays, a, b), choice, move)
    packed = _pack_fields(*zip(move, (3, 4, 4, 3, 1), strict=True))
    kind, target, *plan_after = _unpack_fields(packed, 3, 4, 4, 3, 1)
    return RedMove(kind, target, bits.byte_units(target), *plan_after)


# Red's action


def _is_known(game: Game, red: RedMove) -> Flag:
    known = jnp.where(red.kind >= ESCALATE, game.known_host, game.known_ip)
    known = jnp.where(red.kind == SWEEP, game.known_nets, known)
    return (red.kind == SLEEP_KIND) | has(known, red.target)


class _Exploit(NamedTuple):
    """Effect of ExploitRemoteService."""

    is_used: Flag  # red knows a port of the host
    rank: Word
    events: Word
    opened: Word  # kind of session; 0: none
    detected: Word


def _play_exploit(game: Game, host: Word, exploits: Flag, draws: Draws) -> _Exploit:
    """Play an exploit of the host if `exploits`; see `play_exploit` of the core."""
    options = bits.get_byte(game.red_ports, host)
    is_used = exploits & (options != 0)
    rank = draws.exploit_rank(options) & np.uint32(7)
    hits = is_used & _is_reachable(game, host)
    yields_privileged = has(bits.get_byte(sc.PRIVILEGED, host), rank)
    yields = yields_privileged | has(bits.get_byte(sc.USER_LEVEL, host), rank)
    is_ssh = rank == _SSH_RANK
    decoy_ports = open_ports(bits.get_byte(game.decoys, host))
    is_trap = has(decoy_ports, rank) | (is_ssh & (host == sc.DEFENDER))
    immune = (rank == _MAIL_RANK) & has(game.mail_immune << sc.USER3, host)
    opens = hits & yields & ~immune
    draws_detection = opens & ~is_ssh
    detected = draws_detection & draws.is_detected()
    kind = jnp.where(detected, np.uint32(SEEN_SESSION), np.uint32(UNSEEN_SESSION))
    kind = jnp.where(yields_privileged, np.uint32(PRIVILEGED_SESSION), kind)
    shell = jnp.where(detected, np.uint32(REVERSE_SHELL), np.uint32(ONE))
    trap = only_if(is_trap, np.uint32(TWO_ON_ONE_PORT))
    events = jnp.where(yields, shell, trap)
    events = jnp.where(is_ssh & (yields | is_trap), np.uint32(BRUTE_FORCE), events)
    detection = only_if(draws_detection, word(detected) + np.uint32(1))
    return _Exploit(is_used, rank, only_if(hits, events), only_if(opens, kind), detection)


def _is_reachable(game: Game, host: Word | int) -> Flag:
    """Whether red can reach a host: operational hosts only from the enterprise subnet."""
    is_operational = jnp.asarray(has(sc.OPERATIONAL, host))
    return ~is_operational | ((game.with_red & sc.ENTERPRISE_SERVERS) != 0)


def _red_outcome(rules: Rules, game: Game, red: RedMove, draws: Draws) -> Outcome:
    host = red.target
    allowed = _is_known(game, red) if GIVEN in rules.reds else red.kind == red.kind
    reachable = _is_reachable(game, host)
    sweeps = allowed & (red.kind == SWEEP)
    sweeps = sweeps & ((host != sc.OPERATIONAL_NET) | _is_reachable(game, sc.OP_SERVER0))
    is_scan = allowed & (red.kind == SCAN)
    scans = is_scan & reachable
    listening = _found_ports(game.decoys, host)
    escalated = allowed & (red.kind == ESCALATE) & has(game.with_red, host)
    stops = allowed & (red.kind == IMPACT) & has(game.with_red, sc.OP_SERVER0)
    stops = stops & (game.ot_service_known != 0)
    exploit = _play_exploit(game, host, allowed & (red.kind == EXPLOIT), draws)
    events = exploit.events + only_if(scans, _scan_events(listening, host))
    succeeds = sweeps | is_scan | (exploit.opened != 0) | escalated | stops
    success = jnp.where(succeeds, TRUE, FALSE)
    success = jnp.where(red.kind == SLEEP_KIND, UNKNOWN, success)
    outcome = Outcome(
        success=success,
        events=events,
        opened=exploit.opened,
        detected=exploit.detected,
        uses_exploit=exploit.is_used,
        rank=exploit.rank,
        escalates=escalated & ~has(game.privileged, host),
        escalated=escalated,
        stops_service=stops,
        scans=scans,
        scan_is_empty=is_scan & ~reachable,
        sweeps=sweeps,
        listening=listening,
    )
    return _materialize_outcome(outcome)


def _materialize_outcome(outcome: Outcome) -> Outcome:
    widths = (2, 3, 2, 2, 1, 3, 1, 1, 1, 1, 1, 1, 8)
    packed = _pack_fields(*zip(outcome, widths, strict=True))
    values = _unpack_fields(packed, *widths)
    flags = (
        value if before.dtype == jnp.uint32 else value != 0
        for before, value in zip(outcome, values, strict=True)
    )
    return Outcome(*flags)


def _apply_red(
    rules: Rules, game: Game, red: RedMove, outcome: Outcome, draws: Draws
) -> tuple[Game, Word]:
    host = red.target
    host_bit = np.uint32(1) << host
    opened_bit = only_if(outcome.opened != 0, host_bit)
    escalated_bit = only_if(outcome.escalates, host_bit)
    knows_service = outcome.escalated & (host == sc.OP_SERVER0)
    shells = (outcome.opened != 0) & (outcome.rank != _SSH_RANK)
    game = game._replace(
        known_ip=game.known_ip | _swept_hosts(red, outcome) | _revealed_hosts(host, outcome),
        known_host=game.known_host | opened_bit,
        known_nets=game.known_nets | only_if(outcome.escalated, _subnet_bit(host)),
        malware=game.malware | only_if(shells | outcome.escalates, host_bit),
        privileged=game.privileged
        | only_if(outcome.opened == PRIVILEGED_SESSION, host_bit)
        | escalated_bit,
        ot_service_known=game.ot_service_known | word(knows_service),
        outage=game.outage | only_if(outcome.stops_service, game.ot_pid_known),  # Q3, Q5
        last_scan_empty=jnp.where(
            outcome.scans | outcome.scan_is_empty,
            word(outcome.scan_is_empty),
            game.last_scan_empty,
        ),
        red_ports=_scanned_ports(rules, game, red, outcome),
        position=red.position,
        user_pick=red.user_pick,
        reached_12=red.reached_12,
    )
    game, pick = _update_sessions(rules, game, red, outcome, draws)
    if MEANDER in rules.reds:
        game = _record_meander(rules, game, red)
    return game, pick


def _swept_hosts(red: RedMove, outcome: Outcome) -> Word:
    hosts = jnp.where(red.target == sc.USER_NET, sc.SUBNET_HOSTS[2], sc.SUBNET_HOSTS[1])
    hosts = jnp.where(red.target == sc.ENTERPRISE_NET, sc.SUBNET_HOSTS[0], hosts)
    return only_if(outcome.sweeps, hosts)


def _revealed_hosts(host: Word, outcome: Outcome) -> Word:
    """Hosts whose address an escalation reveals (docs/rules.md, 1.2)."""
    is_user = (host >= sc.USER1) & (host <= sc.USER1 + 3)
    entry = jnp.where(
        host >= sc.USER3, np.uint32(1) << sc.ENTERPRISE0, np.uint32(1) << sc.ENTERPRISE1
    )
    linked = only_if(is_user, entry)
    linked = jnp.where(host == sc.ENTERPRISE2, np.uint32(1) << sc.OP_SERVER0, linked)
    return only_if(outcome.escalated, linked | (np.uint32(1) << host))


def _subnet_bit(host: Word) -> Word:
    bit = jnp.where(has(sc.OPERATIONAL, host), np.uint32(2), np.uint32(1))
    return jnp.where(host >= sc.USER0, np.uint32(4), bit)


def _scanned_ports(rules: Rules, game: Game, red: RedMove, outcome: Outcome) -> HostBytes:
    found = outcome.listening
    if rules.leaderboard:  # L1
        found = found | bits.get_byte(game.red_ports, red.target)
    cleared = bits.clear_byte(game.red_ports, red.units, outcome.scans)
    return bits.add_byte(cleared, red.units, only_if(outcome.scans, found))


def _update_sessions(
    rules: Rules, game: Game, red: RedMove, outcome: Outcome, draws: Draws
) -> tuple[Game, Word]:
    """Open or escalate a session; returns the index of the session that was escalated."""
    host, units = red.target, red.units
    host_bit = np.uint32(1) << host
    opens = [outcome.opened == kind for kind in (UNSEEN_SESSION, SEEN_SESSION, PRIVILEGED_SESSION)]
    pick = jnp.zeros_like(host)
    unseen, seen = game.unseen_counts, game.seen_counts
    if GIVEN in rules.reds:
        game, pick, takes_seen = _escalate_in_log(game, host, outcome, draws)
        counts = bits.get_byte(unseen, host), bits.get_byte(seen, host)
        takes = outcome.escalates & ~takes_seen, outcome.escalates & takes_seen
        unseen = bits.subtract_byte(unseen, units, word(takes[0]))
        seen = bits.subtract_byte(seen, units, word(takes[1]))
        left = [
            only_if(take & (count == 1), host_bit)
            for take, count in zip(takes, counts, strict=True)
        ]
    else:  # B_lineAgent and RedMeanderAgent escalate a host with a single session
        unseen = bits.clear_byte(unseen, units, outcome.escalates)
        seen = bits.clear_byte(seen, units, outcome.escalates)
        left = [only_if(outcome.escalates, host_bit)] * 2
    is_counted = game.sessions < 255  # of at most 255 sessions each count fits a byte
    added = [word(is_open & is_counted) for is_open in opens]
    game = game._replace(
        user_unseen=(game.user_unseen & ~left[0]) | only_if(opens[0], host_bit),
        user_seen=(game.user_seen & ~left[1]) | only_if(opens[1], host_bit),
        unseen_counts=bits.add_byte(unseen, units, added[0]),
        seen_counts=bits.add_byte(seen, units, added[1]),
        privileged_counts=bits.add_byte(
            game.privileged_counts, units, added[2] + word(outcome.escalates)
        ),
    )
    if game.session_log is not None:
        game = game._replace(session_log=_append_session(game, host, outcome))
    return game._replace(sessions=game.sessions + word(outcome.opened != 0)), pick


def _escalate_in_log(
    game: Game, host: Word, outcome: Outcome, draws: Draws
) -> tuple[Game, Word, Flag]:
    log = game.session_log
    assert log is not None
    count = bits.get_byte(game.unseen_counts, host) + bits.get_byte(game.seen_counts, host)
    pick = draws.escalated_session(count)
    is_user = _is_alive(log, host) & ((log & np.uint8(SESSION_PRIVILEGED)) == 0)
    rank = jnp.cumsum(is_user.astype(jnp.int32)) - 1
    chosen = is_user & (rank == pick.astype(jnp.int32)) & outcome.escalates
    takes_seen = (chosen & ((log & np.uint8(SESSION_SEEN)) != 0)).any()
    log = jnp.where(chosen, log | np.uint8(SESSION_PRIVILEGED), log)
    return game._replace(session_log=log), pick, takes_seen


def _append_session(game: Game, host: Word, outcome: Outcome) -> Word:
    log = game.session_log
    assert log is not None
    is_seen = outcome.detected == 2
    flags = only_if(is_seen, np.uint32(SESSION_SEEN)) | np.uint32(SESSION_ALIVE)
    flags = flags | only_if(outcome.opened == PRIVILEGED_SESSION, np.uint32(SESSION_PRIVILEGED))
    flags = flags | only_if(outcome.rank == _SSH_RANK, np.uint32(SESSION_SSH))
    entry = (host | flags).astype(jnp.uint8)
    index = jnp.arange(log.shape[0], dtype=jnp.uint32)
    is_new = (index == game.sessions - np.uint32(1)) & (outcome.opened != 0)
    return jnp.where(is_new, entry, log)


def _record_meander(rules: Rules, game: Game, red: RedMove) -> Game:
    """Add the choice to the host lists of RedMeanderAgent."""
    plays = game.red == MEANDER if len(rules.reds) > 1 else red.kind == red.kind
    chosen = only_if(plays, np.uint32(1) << red.target)
    last_host = only_if((red.kind == ESCALATE) | (red.kind == IMPACT), chosen)
    last_exploit = only_if(red.kind == EXPLOIT, chosen)
    return game._replace(
        swept=game.swept | (only_if(red.kind == SWEEP, chosen) & np.uint32(7)),
        scanned=game.scanned | only_if(red.kind == SCAN, chosen),
        escalated=game.escalated | only_if(red.kind == ESCALATE, chosen),
        exploited=game.exploited | last_exploit,
        last_exploit=last_exploit,
        last_host=last_host,
    )


# Blue's observation and the reward


def _activity(green: int, red: int, decoy: int) -> int:
    """Activity of a host by events (docs/rules.md, 7.2): 0 none, 1 scan, 3 exploit."""
    count = (0, 1, 2, 10, 2, 1, 2, 3)
    distinct_of = (0, 1, 1, 1, 2, 1, 2, 3)
    events = count[green] + count[red]
    shell = red == REVERSE_SHELL
    distinct = distinct_of[red] if green == NO_EVENT else distinct_of[green] + shell
    if events == 0:
        return 0
    if distinct >= 3:
        return 1
    if shell or (events + decoy >= 3 and distinct == 1):
        return 3
    return 0 if decoy else 1


def _activity_table(green: int) -> np.uint32:
    return np.uint32(
        sum(
            _activity(green, red, decoy) << (4 * red + 2 * decoy)
            for red in range(8)
            for decoy in range(2)
        )
    )


_ACTIVITY_TABLES = {green: _activity_table(green) for green in (NO_EVENT, SCAN_1, SCAN_2, SCAN_3)}


def _activity_bits(table: Word, events: Word, decoy: Flag) -> Word:
    return (table >> (events * 4 + word(decoy) * 2)) & np.uint32(3)


def _observe(
    game: Game, blue: BlueMove, red: RedMove, outcome: Outcome, green: tuple[Word, Word | None]
) -> Game:
    """Enter the activity of the step and what Analyse found in blue's table."""
    green_host, green_events = green
    decoy_host = jnp.where(blue.placed, blue.host, NO_HOST)
    by_red = _activity_bits(
        jnp.asarray(_ACTIVITY_TABLES[NO_EVENT]), outcome.events, decoy_host == red.target
    )
    is_apart = red.target != green_host
    red_bit = only_if((outcome.events != NO_EVENT) & is_apart, np.uint32(1) << red.target)
    low = only_if(has(by_red, 0), red_bit)
    high = only_if(has(by_red, 1), red_bit)
    if green_events is not None:
        table = jnp.where(
            green_events == SCAN_2, _ACTIVITY_TABLES[SCAN_2], _ACTIVITY_TABLES[SCAN_3]
        )
        table = jnp.where(green_events == SCAN_1, _ACTIVITY_TABLES[SCAN_1], table)
        red_events = only_if(~is_apart, outcome.events)
        by_green = _activity_bits(table, red_events, decoy_host == green_host)
        green_bit = only_if(green_events != NO_EVENT, np.uint32(1) << green_host)
        low = low | only_if(has(by_green, 0), green_bit)
        high = high | only_if(has(by_green, 1), green_bit)
    found = only_if(blue.finds_malware, np.uint32(1) << blue.host)
    table_low = (game.table_low & ~high) | found  # Q11: an exploit also lowers privileged
    return game._replace(
        activity_low=low,
        activity_high=high,
        table_low=table_low,
        table_high=game.table_high | high | found,
    )


def _state_penalty(game: Game) -> Word:
    """Penalty for hosts with a privileged session and for the stopped service, in tenths."""
    high = bits.count_bits(game.privileged & sc.HIGH_VALUE)
    low = bits.count_bits(game.privileged & sc.LOW_VALUE)
    return high * np.uint32(10) + low + game.outage * np.uint32(100)


def reward(penalty: Word) -> Word:
    """Reward of a step as float32, correctly rounded; XLA would divide by 10 inexactly."""
    whole = (penalty * np.uint32(6554)) >> 16  # penalty // 10, exact below 16389
    tenth = penalty - whole * np.uint32(10)
    share = jnp.zeros_like(penalty, jnp.float32)
    for value in range(1, 10):
        share = jnp.where(tenth == value, np.float32(value / 10), share)
    return np.float32(0) - (whole.astype(jnp.float32) + share)


def moves(action: Word, result: StepResult) -> dict[str, Word]:
    """Moves of a step, in the fields of `cagepool.sim.dtypes.MOVES`, as int32."""
    group, _ = decode_action(action)
    is_decoy = (group >= 2) & (group <= 9)
    blue_success = jnp.where(is_decoy, result.blue.placed.astype(jnp.int32), 1)
    outcome = result.outcome
    exploit = jnp.zeros_like(outcome.rank)
    for rank, name in enumerate(sc.EXPLOIT_OF_RANK):
        exploit = jnp.where(outcome.rank == rank, np.uint32(name), exploit)
    return {
        "blue_action": action.astype(jnp.int32),
        "blue_success": jnp.where(action == 0, -1, blue_success),
        "red_kind": result.red.kind.astype(jnp.int32),
        "red_target": _signed(result.red.target, result.red.target == NO_HOST),
        "red_success": outcome.success.astype(jnp.int32) - 1,
        "exploit": _signed(exploit, ~outcome.uses_exploit),
        "detected": outcome.detected.astype(jnp.int32) - 1,
        "green_host": _signed(result.green_host, result.green_host == NO_HOST),
        "decoy_pick": jnp.full_like(action, -1, jnp.int32),
    }


def _signed(value: Word, is_none: Flag) -> Word:
    """Convert to int32, with -1 for none."""
    return jnp.where(is_none, -1, value.astype(jnp.int32))
