"""A game rendered as text."""

from cagepool.render.text import render_text
from cagepool.sim import Batch
from cagepool.sim.names import HOSTS
from tests.sim.games import play_step, start_batch

SCENE = """\
step 7, red given, edition 2.1
blue    DecoyTomcat User1: TRUE
red     ExploitRemoteService Enterprise1 by HTTPSRFI: TRUE
reward  -0.1

                          |  what blue sees         |  what is true
host         subnet       |  activity  compromised  |  access      priv  seen  unseen  malware  decoys
Defender     Enterprise   |  .         .            |  .           .     .     .       .        .
Enterprise0  Enterprise   |  .         .            |  .           .     .     .       .        .
Enterprise1  Enterprise   |  Exploit   User         |  user        .     1     .       file     .
Enterprise2  Enterprise   |  .         .            |  .           .     .     .       .        .
Op_Host0     Operational  |  .         .            |  .           .     .     .       .        .
Op_Host1     Operational  |  .         .            |  .           .     .     .       .        Apache Vsftpd x2
Op_Host2     Operational  |  .         .            |  .           .     .     .       .        .
Op_Server0   Operational  |  .         .            |  .           .     .     .       .        .
User0        User         |  .         .            |  privileged  1     .     .       .        .
User1        User         |  .         User         |  privileged  1     .     .       file     Tomcat
User2        User         |  .         .            |  .           .     .     .       .        .
User3        User         |  .         .            |  .           .     .     .       .        .
User4        User         |  .         .            |  .           .     .     .       .        .

OTService runs; red does not know of it
"""  # noqa: E501


def test_a_picture_shows_blues_view_beside_the_truth() -> None:
    batch = start_batch(2, seed=1, red="given")
    for blue, red in [
        ("DecoyApache Op_Host1", "DiscoverRemoteSystems User"),
        ("DecoyVsftpd Op_Host1", "DiscoverNetworkServices User1"),
        ("DecoyVsftpd Op_Host1", "ExploitRemoteService User1"),
        ("Sleep", "PrivilegeEscalate User1"),
        ("Sleep", "DiscoverNetworkServices Enterprise1"),
        ("Sleep", "Sleep"),
        ("DecoyTomcat User1", "ExploitRemoteService Enterprise1"),
    ]:
        play_step(batch, blue, red)
    assert render_text(batch, 0) == SCENE


def test_a_game_that_has_just_begun_has_no_last_moves() -> None:
    batch = start_batch(1, red="meander", edition="leaderboard", max_steps=1, autoreset="same_step")
    before = render_text(batch, 0)
    play_step(batch, "Restore User1")  # ends the episode
    assert render_text(batch, 0) == before
    assert before.splitlines()[:2] == ["step 0, red RedMeanderAgent, edition leaderboard", ""]


def test_green_is_shown_when_it_scans() -> None:
    batch = start_batch(40, red="sleep", green=True)
    play_step(batch, "Monitor")
    for game in range(40):
        host = int(batch.moves["green_host"][game])
        lines = render_text(batch, game).splitlines()
        assert (f"green   PortScan {HOSTS[host]}" in lines) == (host >= 0)
        assert "blue    Monitor: TRUE" in lines
        assert "red     Sleep: UNKNOWN" in lines


def test_the_service_tells_its_story() -> None:
    batch = start_batch(1, seed=3, red="b_line")
    assert service_line(batch) == "OTService runs; red does not know of it"
    while batch.true_state["ot_running"][0].any():
        play_step(batch, "Sleep")
    assert service_line(batch) == "OTService is stopped; red knows of it"
    play_step(batch, "Restore Op_Server0")
    assert service_line(batch) == (
        "OTService runs; red knows of it; Impact cannot stop it since Op_Server0 was restored"
    )


def service_line(batch: Batch) -> str:
    return render_text(batch, 0).splitlines()[-1]
