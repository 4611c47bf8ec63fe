"""How a process ended is told from its last lines: by the very words of Kafka 3.9.2 and of a JVM, and nothing but what fits is
quoted. The longer outputs below are what real servers printed, shortened."""

import time

import pytest

from domain.diagnosis.logs.complaints import said_in
from domain.diagnosis.logs.connecting import UNCONNECTED, unconnected_in
from domain.diagnosis.logs.endings import DEATHS, SILENT, death_in, ending_of, ending_of_started, words_of
from domain.diagnosis.logs.lines import MAX_QUOTE
from domain.diagnosis.logs.running import silence_in

STAMP = "[2026-11-20 03:00:{:02},123] "
DYING = {told.name: told.sample for told in DEATHS}


def test_who_asked_for_the_memory_counts_where_it_is_the_log_cleaner() -> None:
    """Only the frames say so, and more heap is not what is needed where somebody has set that buffer for all brokers."""
    frames = ("\tat java.base/java.nio.ByteBuffer.allocate(ByteBuffer.java:363)",)
    cleaner = ("\tat org.apache.kafka.storage.internals.log.SkimpyOffsetMap.<init>(SkimpyOffsetMap.java:90)",)
    assert named(BEGUN, STAMP.format(1) + DYING["out-of-memory"], *frames) == "out-of-memory"
    found = death_in((BEGUN, STAMP.format(1) + DYING["out-of-memory"], *frames, *cleaner))
    assert found is not None
    assert "--delete-config log.cleaner.dedupe.buffer.size" in found.told.fix
    assert "log cleaner" in found.quote
    starting = STAMP.format(1) + "INFO Starting the log cleaner (kafka.log.LogCleaner)"
    ending = (BEGUN, starting, "Terminating due to java.lang.OutOfMemoryError: Java heap space")
    assert named(*ending) == "cleaner-buffer"
    found = silence_in(ending)
    assert found is not None
    assert found.told.name == "cleaner-buffer", "of one that is still about to end, too"


def test_the_last_known_words_count() -> None:
    assert (found := death_in((DYING["disk-full"], DYING["port-in-use"]))) is not None
    assert found.told.name == "port-in-use"
    assert death_in(("INFO nothing special", "INFO shut down completed")) is None


def test_of_a_death_the_exact_words_count_and_not_what_follows_from_it() -> None:
    """A full disk ends with the words of a failed one, and a jar that is gone with those of a virtual machine that fails."""
    for exact, vague in (("disk-full", "log-dirs-failed"), ("installation-gone", "java-failed")):
        assert (found := death_in((DYING[exact], "\tat somewhere", DYING[vague]))) is not None
        assert found.told.name == exact


def test_a_value_that_kafka_does_not_accept_is_not_repeated() -> None:
    line = "ConfigException: Invalid value hunter2 for configuration ssl.keystore.password: it is not good, hunter2"
    found = death_in((line,))
    assert found is not None
    assert "hunter2" not in found.quote
    assert "ssl.keystore.password" in found.quote


@pytest.mark.parametrize(
    ("words", "quoted"),
    [
        (
            "Vault responded with HTTP status code: 403\nResponse body: {hunter2}",
            "VaultException: Vault responded with HTTP status code: 403",
        ),
        ("hvs.hunter2=x", "VaultException"),
        ("token hunter2", "VaultException"),
        ("cannot log in with password hunterTwo for user kafka", "VaultException"),
        ("no answer for hunterTwo from here: 403", "VaultException"),
    ],
)
def test_of_what_a_store_of_secrets_says_no_value_is_told(words: str, quoted: str) -> None:
    found = death_in((f"ConfigException: io.github.jopenlibs.vault.VaultException: {words}",))
    assert found is not None
    assert found.told.name == "provider-refused"
    assert found.quote.endswith(quoted)


@pytest.mark.parametrize("spoken_of", ["password", "passphrase", "Secret", "token", "key", "credential"])
@pytest.mark.parametrize(
    "end", ["", ": com.acme.VaultException", " for configuration com.acme.x", ": x for configuration com.acme.x"]
)
def test_of_what_a_plug_in_says_of_a_secret_no_letter_is_told(spoken_of: str, end: str) -> None:
    found = death_in((f"ConfigException: Cannot log in with {spoken_of} hunterTwo for user kafka{end}",))
    assert found is not None
    assert found.told.name == "bad-configuration"
    assert found.quote == "ConfigException: Cannot log in with"


def test_of_a_property_that_is_refused_all_is_told_up_to_its_value() -> None:
    words = "You must set `node.id` to the same value as `broker.id`, and not to one that is longer than that by far"
    found = death_in((f"ConfigException: {words}: hunter2",))
    assert found is not None
    assert (found.told.name, found.quote) == ("bad-configuration", f"ConfigException: {words}")


@pytest.mark.parametrize(
    "words",
    [
        "Error creating broker listeners from 'PLAINTEXT//:9092': Unable to parse PLAINTEXT//:9092 to a broker endpoint",
        "Error parsing configuration property 'listener.security.protocol.map': x",
        "expected a string in format principalType:principalName but got kafka",
    ],
)
def test_a_property_that_kafka_cannot_read_is_to_be_corrected(words: str) -> None:
    found = death_in((f"java.lang.IllegalArgumentException: {words}",))
    assert found is not None
    assert found.told.name == "bad-requirement"
    assert found.quote.removeprefix("IllegalArgumentException: ") in words


def test_a_quote_is_short() -> None:
    found = death_in(("ConfigException: Invalid value " + "x" * 150 + " for configuration " + "y" * 500,))
    assert found is not None
    assert len(found.quote) <= MAX_QUOTE


# --- what real servers printed ---------------------------------------------------------------------------------------

BEGUN = "[2026-11-20 03:00:00,497] INFO Registered kafka:type=kafka.Log4jController MBean (kafka.utils.X)"
ORDINARY = "[2026-11-20 03:00:13,836] INFO [ControllerServer id=3001] Our registration has been persisted (kafka.server.X)"
SIGTERM = "[2026-11-20 03:00:43,373] INFO Terminating process due to signal SIGTERM (org.apache.kafka.common.utils.X)"
ENDED = (
    "[2026-11-20 03:00:43,512] INFO App info kafka.server for 3001 unregistered (org.apache.kafka.common.utils.AppInfoParser)"
)
ZK_ENDED = "[2026-11-20 03:00:43,512] INFO [KafkaServer id=1] shut down completed (kafka.server.KafkaServer)"
FATAL = "[2026-11-20 03:00:13,909] ERROR Encountered fatal fault: caught exception (org.apache.kafka.server.fault.X)"
FRAMES = tuple(f"\tat kafka.raft.KafkaRaftManager.start{n}(RaftManager.scala:{n})" for n in range(90))
STRANGE = "java.lang.IllegalStateException: the moon is full"


def told(*lines: str) -> str:
    return ending_of(lines).observed


def named(*lines: str) -> str:
    found = death_in(lines)
    return found.told.name if found is not None else "-"


def test_a_node_that_was_stopped_is_not_told_as_one_that_has_failed() -> None:
    """Neither what it has complained of before nor what it says when it closes is a cause."""
    complaint = "[2026-11-20 03:00:42,000] ERROR Error while accepting connection (kafka.network.DataPlaneAcceptor)"
    late = "[2026-11-20 03:00:43,400] ERROR Graceful shutdown of RaftClient failed (kafka.raft.X)"
    trace = "java.net.SocketException: Too many open files"
    for lines in (
        (BEGUN, ORDINARY, SIGTERM, ENDED),
        (BEGUN, complaint, trace, SIGTERM, late, trace, ENDED),
        (BEGUN, ORDINARY, SIGTERM),
        (BEGUN, ORDINARY, SIGTERM, late),
    ):
        if lines[-1] is not late:
            assert named(*lines) == "-"
            assert told(*lines) == "It was stopped in order: Terminating process due to signal SIGTERM"
            assert ending_of(lines).fix.startswith("Start it.")
    assert told(ORDINARY, ZK_ENDED) == "It was stopped in order: shut down completed (kafka.server.KafkaServer)"


def test_a_start_that_fails_after_an_orderly_stop_is_told_by_its_failure() -> None:
    """A JVM that does not come up prints nothing of Kafka's: its words follow those of the process before."""
    gone = ("Error: Could not find or load main class kafka.Kafka", "Caused by: java.lang.ClassNotFoundException: kafka.Kafka")
    assert named(BEGUN, SIGTERM, ENDED, *gone) == "installation-gone"
    assert "kafka.Kafka" in told(BEGUN, SIGTERM, ENDED, *gone)
    exiting = "[2026-11-20 03:00:43,600] ERROR Exiting Kafka due to fatal exception during startup. (kafka.Kafka$)"
    assert STRANGE.split(": ")[1] in told(BEGUN, FATAL, STRANGE, *FRAMES, ZK_ENDED, exiting, STRANGE, *FRAMES)
    assert STRANGE.split(": ")[1] in told(BEGUN, FATAL, STRANGE, *FRAMES, ZK_ENDED)


@pytest.mark.parametrize(
    "said",
    [
        "sudo: a password is required",
        "/opt/kafka/start.sh: line 3: numactl: command not found",
        "/opt/kafka/start.sh: line 5: KAFKA_HEAP: unbound variable",
        "curl: (7) Failed to connect to vault port 8200: Connection refused",
        "kafka is in maintenance, not starting",
        "nice: cannot set niceness: Permission denied",
        "chroot: failed to run command: No such file or directory",
        "su: cannot open session: Permission denied",
        "sudo: unknown user: kafka",
        "runuser: user kafka does not exist",
        "start: 6: echo: echo: I/O error",
        "bash: line 3: ulimit: open files: cannot modify limit: Operation not permitted",
        "exec: java: cannot execute: Permission denied",
        "/opt/kafka/start.sh: line 4: /opt/kafka/bin/kafka-server-start.sh: Permission denied",
    ],
)
def test_a_start_command_that_fails_before_kafka_is_told_in_its_own_words(said: str) -> None:
    """Above them stands the orderly end of the process before, which is no cause."""
    since = ending_of_started([said])
    assert since.observed.endswith(f"ended before Kafka began in it. It printed: {said}")
    assert "stopped in order" not in since.observed
    assert "chown" not in since.fix
    assert "by hand" in since.fix
    below = ending_of((BEGUN, ORDINARY, SIGTERM, ENDED, said))
    assert said in below.observed
    assert "by hand" in below.further
    assert "chown" not in below.fix


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("/usr/bin/env: 'java': No such file or directory", "java-gone"),
        ("/opt/kafka/start.sh: line 3: /etc/kafka/env.sh: No such file or directory", "missing-file"),
        ("java.io.FileNotFoundException: /etc/kafka/log4j.properties (Permission denied)", "no-permission"),
    ],
)
def test_a_file_that_is_named_before_kafka_is_told_as_such(said: str, kind: str) -> None:
    assert named(said) == kind
    assert said in ending_of_started([said]).observed


def test_a_start_command_that_ends_without_a_word_is_told_as_such() -> None:
    assert ending_of_started([]).observed.endswith("ended before Kafka began in it. It printed nothing")
    assert "start command" in ending_of_started([]).fix


def test_what_was_started_and_got_to_kafka_is_told_as_any_other() -> None:
    assert ending_of_started([BEGUN, ORDINARY, SIGTERM, ENDED]) == ending_of([BEGUN, ORDINARY, SIGTERM, ENDED])
    assert ending_of_started([FATAL, STRANGE]) == ending_of([FATAL, STRANGE])


def test_who_is_told_to_end_while_it_starts_is_told_so_whatever_it_says_then() -> None:
    """A health check without patience does so at every start, and what the broker says is no cause."""
    halted = (
        "[2026-11-20 03:00:43,376] ERROR [KafkaServer id=3] Fatal error during KafkaServer shutdown. (kafka.server.X)",
        DYING["ended-while-starting"],
        "\tat kafka.server.KafkaServer.shutdown(KafkaServer.scala:982)",
        "[2026-11-20 03:00:43,377] ERROR Halting Kafka. (kafka.Kafka$)",
    )
    failed = ("[2026-11-20 03:00:43,378] ERROR it fails (kafka.X)", "java.io.IOException: No space left on device")
    for lines in ((BEGUN, ORDINARY, SIGTERM, *halted), (BEGUN, ORDINARY, SIGTERM, *halted, *failed)):
        ending = ending_of(lines)
        assert ending.observed.startswith("It got a signal to end (SIGTERM) 43 s after its start, while it still started")
        assert "TimeoutStartSec=" in ending.fix
        assert ending.fix.endswith("Then start it.")
    assert told(ORDINARY, SIGTERM, *halted).startswith("It got a signal to end (SIGTERM), while it still started")
    assert told(BEGUN, *halted).startswith("It got a signal to end, while it still started")


def test_output_that_ends_amid_ordinary_lines_is_that_of_a_killed_process() -> None:
    for lines in (
        (BEGUN, ORDINARY),
        (BEGUN, "[2026-11-20 02:40:13,836] ERROR an hour ago (x)", "java.io.IOException: No space left on device", ORDINARY),
        (
            BEGUN,
            "[2026-11-20 03:00:13,000] WARN Error connecting to node a:1 (x)",
            "java.net.UnknownHostException: a",
            ORDINARY,
        ),
        (BEGUN, ORDINARY, "[2026-11-20 03:00:13,900] WARN Found invalid messages (x)", "\tat a.b(C.java:1)"),
    ):
        assert named(*lines) == "-"
        assert "it was killed" in told(*lines)
        assert "2026-11-20 03:00:13" in told(*lines)
        assert "dmesg" in ending_of(lines).fix


UNWRITTEN = (
    "log4j:ERROR setFile(null,true) call failed.",
    "java.io.FileNotFoundException: /opt/kafka/logs/server.log (Permission denied)",
    "\tat java.base/java.io.FileOutputStream.open0(Native Method)",
    "log4j:ERROR Either File or DatePattern options are not set for appender [kafkaAppender].",
)
UNFLUSHED = (
    "log4j:ERROR Failed to flush writer,",
    "java.io.IOException: No space left on device",
    "\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)",
)


@pytest.mark.parametrize("of_its_log", [UNWRITTEN, UNFLUSHED])
def test_a_log_that_cannot_be_written_is_no_death(of_its_log: tuple[str, ...]) -> None:
    """Kafka goes on without it."""
    for lines in ((BEGUN, *of_its_log, ORDINARY), (*of_its_log, BEGUN, ORDINARY), (BEGUN, ORDINARY, *of_its_log)):
        assert "it was killed" in told(*lines)
    thrown = ("[2026-11-20 03:00:13,909] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)", STRANGE)
    assert told(BEGUN, *of_its_log, *thrown).endswith(STRANGE)
    assert "log4j" not in told(BEGUN, *of_its_log, *thrown)
    assert named(BEGUN, *of_its_log, thrown[0], "java.io.IOException: Map failed") == "out-of-maps"
    assert told(BEGUN, *of_its_log, SIGTERM, ENDED).startswith("It was stopped in order")
    assert told(BEGUN, SIGTERM, ENDED, *of_its_log).startswith("It was stopped in order")


@pytest.mark.parametrize(
    "of_its_log",
    [("log4j:WARN No such property [maxBackups] in org.apache.log4j.DailyRollingFileAppender.",), UNWRITTEN, UNFLUSHED],
)
def test_what_a_logger_prints_is_no_word_of_kafka_s(of_its_log: tuple[str, ...]) -> None:
    """A start command's tool may have one as well."""
    lines = (*of_its_log, "waiting for the lock /var/lock/x: gave up")
    assert ending_of_started(lines).kind == "not-begun"
    assert "waiting for the lock /var/lock/x: gave up" in ending_of_started(lines).observed
    assert ending_of(lines).kind == ""


def test_a_plug_in_of_the_logger_s_has_not_thrown_what_was_thrown_elsewhere() -> None:
    appender = (*UNWRITTEN[:3], "\tat com.acme.Appender.open(Appender.java:1)", "\t... 14 more", UNWRITTEN[3])
    ending = ending_of((BEGUN, *appender, "Error: could not load x", ORDINARY))
    assert ending.observed.endswith("Error: could not load x")
    assert "plug-in" not in ending.fix
    thrown = (FATAL, STRANGE, "\tat com.acme.Policy.configure(Policy.java:1)")
    assert ending_of((BEGUN, *appender, *thrown)).observed.endswith("That came from com.acme.Policy.configure")


def test_a_log_of_any_layout_is_judged_in_no_time() -> None:
    begun = time.process_time()
    ending_of(("some layout " + "a/b:c[d]=e," * 2000,) * 2000)
    assert time.process_time() - begun < 3.0


def test_nothing_printed_is_told_as_nothing() -> None:
    assert ending_of(()) == ending_of(("", "  ")) == SILENT


def test_of_an_unknown_end_its_errors_are_shown_and_neither_frames_nor_what_closes_after_them() -> None:
    closing = ORDINARY.replace("Our registration has been persisted", "closed event queue")
    shown = told(
        BEGUN, FATAL, STRANGE, *FRAMES, "Caused by: java.io.EOFException: a tooth is missing", "\t... 14 more", closing
    )
    assert "the moon is full" in shown
    assert "a tooth is missing" in shown
    assert "at kafka" not in shown
    assert "caught exception" not in shown
    assert "closed event queue" not in shown
    assert "Encountered fatal fault" in told(BEGUN, FATAL)


def test_what_is_shown_of_an_unknown_end_holds_no_secret_and_keeps_paths() -> None:
    lines = (
        "[2026-11-20 03:00:13,909] ERROR ssl.key.password=hunter2 'hunter2' [hunter2] in /var/lib/kafka/keys (x)",
        "java.lang.Strange$Error: Invalid value hunter2 for configuration a.b: not hunter2",
        "Caused by: my.OwnException: aHVudGVyMg0K+/AAbbCC11==",
    )
    shown = told(*lines)
    assert "hunter2" not in shown
    assert "aHVudGVy" not in shown
    assert "/var/lib/kafka/keys" in shown
    assert "a.b" in shown


REPORTER = (
    "[2026-11-20 03:00:13,909] ERROR Fatal error during startup (kafka.server.KafkaServer)",
    "java.lang.NumberFormatException: Cannot parse null string: null",
    "\tat java.base/java.lang.Integer.parseInt(Integer.java:630)",
    "\tat com.example.metrics.OwnReporter.configure(OwnReporter.java:12)",
    "\tat org.apache.kafka.common.config.AbstractConfig.getConfiguredInstance(AbstractConfig.java:1)",
)


def test_an_unknown_error_is_told_with_the_plug_in_that_threw_it() -> None:
    assert "That came from com.example.metrics.OwnReporter.configure" in told(BEGUN, *REPORTER)
    assert "plug-in" in ending_of((BEGUN, *REPORTER)).fix
    own = [line for line in REPORTER if "example" not in line]
    assert "That came from" not in told(BEGUN, *own)


def test_what_only_follows_from_another_error_is_no_cause() -> None:
    decoded = DYING["password-not-decoded"]
    follows = "org.apache.kafka.common.KafkaException: SSL key store is specified, but key store password is not specified."
    assert named(BEGUN, decoded, FATAL, follows) == "password-not-decoded"


def test_what_is_vague_is_told_with_the_error_behind_it() -> None:
    limit = (
        "[2026-11-20 03:00:13,800] ERROR Error while writing to /data/1/orders-0 (x)",
        "java.io.IOException: File too large",
    )
    gone = "[2026-11-20 03:00:13,900] ERROR Shutdown broker because all log dirs in /data/1 have failed (kafka.log.LogManager)"
    assert "File too large" in told(BEGUN, *limit, gone)


def test_what_is_vague_names_the_thing_and_what_is_exact_the_cause() -> None:
    loading = "[2026-11-20 03:00:13,100] INFO Error while loading logs in /data/1/orders-0 in 5ms (kafka.log.LogManager)"
    failed = "[2026-11-20 03:00:13,200] ERROR There was an error in one of the threads during logs loading: java.lang.X (x)"
    uuid = "IllegalArgumentException: Input string `rubb` decoded as 3 bytes, which is not equal to the expected 16 bytes "
    lines = (BEGUN, loading, failed, FATAL, uuid + "of a base64-encoded UUID", *FRAMES)
    assert named(*lines) == "topic-id-missing"
    assert "/data/1/orders-0" in told(*lines)
    assert named(BEGUN, loading, failed, FATAL, "java.lang.NumberFormatException: no") == "loading-failed"
    assert "/data/1/orders-0" in told(BEGUN, loading, failed, FATAL)
    store = "org.apache.kafka.common.KafkaException: Failed to load SSL keystore /etc/kafka/ks.p12 of type PKCS12"
    lines = (FATAL, store, *FRAMES, "Caused by: java.io.IOException: keystore password was incorrect", *FRAMES)
    assert named(*lines) == "key-store-password"
    assert "/etc/kafka/ks.p12" in told(*lines)


def test_a_port_is_quoted_with_its_number_though_its_cause_has_none() -> None:
    bound = "org.apache.kafka.common.KafkaException: Socket server failed to bind to 127.0.0.1:9092: "
    for words, kind in (("Address already in use", "port-in-use"), ("Cannot assign requested address", "address-not-here")):
        lines = (FATAL, bound + words + ".", *FRAMES, "Caused by: java.net.BindException: " + words, *FRAMES)
        assert named(*lines) == kind
        assert "127.0.0.1:9092" in told(*lines)


@pytest.mark.parametrize(
    ("port", "words", "kind"),
    [
        (9095, "Permission denied", "bind-refused"),
        (1024, "Permission denied", "bind-refused"),
        (1023, "Permission denied", "port-not-allowed"),
        (93, "Permission denied", "port-not-allowed"),
        (9095, "Operation not permitted", "bind-refused"),
        (9095, "Protocol family unavailable", "bind-refused"),
    ],
)
def test_a_bind_that_fails_of_anything_else_is_no_taken_port_and_no_file(port: int, words: str, kind: str) -> None:
    bound = f"org.apache.kafka.common.KafkaException: Socket server failed to bind to 10.0.0.5:{port}: {words}."
    lines = (FATAL, bound, *FRAMES, f"Caused by: java.net.BindException: {words}", *FRAMES)
    assert named(*lines) == kind
    assert f"10.0.0.5:{port}: {words}" in told(*lines)
    assert "chown" not in ending_of(lines).fix


SEGMENT = "/scratch/kafka-logs/orders-0/00000000000000000000.log"


@pytest.mark.parametrize(
    ("path", "log_dirs", "is_data"),
    [
        (SEGMENT, ("/data/1", "/scratch/kafka-logs"), True),
        (f"{SEGMENT} -> {SEGMENT}.deleted", ("/scratch/kafka-logs/",), True),
        (SEGMENT, ("/scratch/kafka",), False),
        ("/scratch/kafka-logs/meta.properties", ("/scratch/kafka-logs",), False),
        ("/etc/kafka/keystore.jks", ("/scratch/kafka-logs",), False),
    ],
)
def test_a_file_of_a_partition_that_somebody_has_deleted_is_nothing_that_a_property_names(
    path: str, log_dirs: tuple[str, ...], is_data: bool
) -> None:
    failed = "[2026-11-20 03:00:13,800] ERROR Error while deleting segments for orders-0 in dir /scratch/kafka-logs (x)"
    gone = "[2026-11-20 03:00:13,900] ERROR Shutdown broker because all log dirs in /scratch/kafka-logs have failed (x)"
    ending = ending_of((BEGUN, failed, f"java.nio.file.NoSuchFileException: {path}", *FRAMES, gone), log_dirs)
    assert path.partition(" ")[0] in ending.observed
    assert ("tmpreaper" in ending.fix) is is_data
    assert ("Put the file back" in ending.fix) is not is_data


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("Operation not permitted", "file-unusable"),
        ("Is a directory", "file-unusable"),
        ("Not a directory", "file-unusable"),
        ("Too many levels of symbolic links", "file-unusable"),
        ("Text file busy", "file-unusable"),
        ("Permission denied", "no-permission"),
        ("Input/output error", "disk-failed"),
        ("No such file or directory", "missing-file"),
    ],
)
def test_a_file_that_java_does_not_open_is_missing_only_where_the_system_says_so(reason: str, kind: str) -> None:
    """`FileNotFoundException` it calls all of them."""
    thrown = f"java.io.FileNotFoundException: {SEGMENT.replace('.log', '.index')} ({reason})"
    failed = "[2026-11-20 03:00:13,900] ERROR Error while loading log dir /scratch/kafka-logs (kafka.log.LogManager)"
    lines = (BEGUN, failed, thrown, *FRAMES)
    assert named(*lines) == kind
    ending = ending_of(lines, ("/scratch/kafka-logs",))
    assert reason in ending.observed or kind == "missing-file"
    assert ("tmpreaper" in ending.fix) is (kind == "missing-file")
    assert "Put the file back" not in ending.fix
    assert "start" in ending.fix


@pytest.mark.parametrize(
    ("thrown", "kind"),
    [
        ("java.io.IOException: Bad message", "file-system-damaged"),
        ("java.io.IOException: Remote I/O error", "disk-failed"),
        ("java.io.IOException: Link has been severed", "disk-failed"),
        ("java.io.IOException: No data available", "disk-failed"),
        ("java.io.IOException: No such device or address", "disk-failed"),
        ("java.io.IOException: No such device", "disk-failed"),
        ("java.nio.file.FileSystemException: /data/kafka/orders-3/00.log: Host is down", "disk-failed"),
        ("java.io.FileNotFoundException: /data/kafka/.lock (Connection timed out)", "disk-failed"),
        ("java.io.FileNotFoundException: /data/kafka/.lock (Remote I/O error)", "disk-failed"),
        ("java.io.FileNotFoundException: /data/kafka/.lock (Cannot allocate memory)", "host-out-of-memory"),
        ("java.io.IOException: File too large", "file-too-large"),
        ("java.io.IOException: No locks available", "no-locks"),
        ("java.io.IOException: Connection timed out", "log-dirs-failed"),
    ],
)
def test_what_a_disk_answers_is_told_by_its_words(thrown: str, kind: str) -> None:
    """Where they are of a connection as well, only with a file's name."""
    channel = "(org.apache.kafka.storage.internals.log.LogDirFailureChannel)"
    failed = f"[2026-11-20 03:00:13,000] ERROR Error while flushing log for orders-3 in dir /data/kafka with offset 7 {channel}"
    ended = "[2026-11-20 03:00:13,200] ERROR Shutdown broker because all log dirs in /data/kafka have failed (kafka.log.X)"
    assert named(BEGUN, failed, thrown, "\tat java.base/sun.nio.ch.FileDispatcherImpl.force0(Native Method)", ended) == kind
    assert thrown.rpartition(": ")[2].rpartition("(")[2].rstrip(")") in told(BEGUN, failed, thrown, *FRAMES, ended)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("fork: retry: Resource temporarily unavailable", "out-of-threads"),
        ("fork: Cannot allocate memory", "host-out-of-memory"),
        ("fork: retry: Cannot allocate memory", "host-out-of-memory"),
    ],
)
def test_a_start_command_that_can_start_no_program_says_of_what_there_is_no_more(said: str, kind: str) -> None:
    assert ending_of_started([f"/opt/kafka/bin/kafka-run-class.sh: {said}"]).kind == kind


@pytest.mark.parametrize(
    "said",
    [
        "/opt/jdk/bin/java: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by /opt/jdk/lib/libjli.so)",
        "Error: failed /usr/lib/jvm/java-17/lib/server/libjvm.so, because /usr/lib/jvm/java-17/lib/server/libjvm.so: cannot "
        "open shared object file: No such file or directory",
        "/opt/kafka/bin/kafka-run-class.sh: line 346: /opt/java/bin/java: cannot execute binary file: Exec format error",
        'Exception in thread "main" java.lang.InternalError: Error loading java.security file',
    ],
)
def test_a_java_that_does_not_fit_its_machine_is_not_one_that_is_gone(said: str) -> None:
    ending = ending_of_started([said])
    assert ending.kind == "java-broken"
    assert ending.fix.startswith("Install a Java that fits")


def test_a_class_whose_start_failed_is_no_plug_in_that_is_missing() -> None:
    begun = "java.lang.NoClassDefFoundError: Could not initialize class "
    assert named(BEGUN, FATAL, f"{begun}org.xerial.snappy.Snappy", *FRAMES) == "native-library"
    assert named(BEGUN, FATAL, DYING["native-library"], *FRAMES, f"{begun}com.github.luben.zstd.Zstd") == "native-library"
    assert named(BEGUN, FATAL, f"{begun}org.example.Policy", *FRAMES) == "-"
    assert "org.example.Policy" in told(BEGUN, FATAL, f"{begun}org.example.Policy", *FRAMES)


ABORTED = (
    "[2026-11-20 03:00:13,800] ERROR Aborting the metadata migration from ZooKeeper to KRaft. MigrationManifest("
    "startTimeNanos=1, totalRecords=3). (org.apache.kafka.metadata.migration.KRaftMigrationDriver)"
)
FATAL_COPY = "[2026-11-20 03:00:13,900] ERROR Encountered fatal fault: Aborting the ZK migration (org.apache.kafka.server.x)"


@pytest.mark.parametrize(
    ("thrown", "kind", "words"),
    [
        (
            "org.apache.zookeeper.KeeperException$NoAuthException: KeeperErrorCode = NoAuth for /config/users",
            "zookeeper-no-auth",
            "/config/users",
        ),
        ("java.lang.OutOfMemoryError: Java heap space", "out-of-memory", "Java heap space"),
        (
            "org.apache.kafka.common.errors.TimeoutException: a batch was not committed in time",
            "migration-copy-failed",
            "a batch was not committed in time",
        ),
        (
            "org.apache.zookeeper.KeeperException$SessionExpiredException: KeeperErrorCode = Session expired for /brokers",
            "migration-copy-failed",
            "Session expired for /brokers",
        ),
    ],
)
def test_a_copy_that_was_given_up_is_told_with_what_it_died_of(thrown: str, kind: str, words: str) -> None:
    lines = (BEGUN, ORDINARY, ABORTED, thrown, *FRAMES, FATAL_COPY)
    assert named(*lines) == kind
    assert words in told(*lines)


EXPORTER_FAILED = (
    "Failed to start Prometheus JMX Exporter",
    "",
    "mapping values are not allowed here",
    " in 'reader', line 2, column 34:",
    "    - pattern: kafka.server<type=(.+): hunter2",
    "                                     ^",
    "",
    "\tat io.prometheus.jmx.shaded.org.yaml.snakeyaml.scanner.ScannerImpl.fetchValue(ScannerImpl.java:902)",
    "Prometheus JMX Exporter exiting",
)


def test_an_exporter_that_cannot_read_its_rules_is_told_with_the_place_and_nothing_that_stands_there() -> None:
    """Kafka has not begun in that process."""
    found = ending_of_started(EXPORTER_FAILED)
    assert found.kind == "exporter-file"
    assert "in 'reader', line 2, column 34" in found.observed
    assert "hunter2" not in found.observed
    assert "its file of rules" in found.fix


def test_a_crash_of_the_jvm_is_told_with_its_signal_and_its_report() -> None:
    crash = (
        "#",
        "# A fatal error has been detected by the Java Runtime Environment:",
        "#",
        "#  SIGBUS (0x7) at pc=0x00007fbe4edcaf14, pid=8110, tid=8110",
        "# C  [libc.so.6+0x85f14]",
        "# An error report file with more information is saved as:",
        "# /opt/kafka/hs_err_pid8110.log",
        "#   https://bugs.debian.org/openjdk-17",
    )
    assert named(BEGUN, ORDINARY, *crash) == "java-crashed-on-a-mapped-file"
    assert "/opt/kafka/hs_err_pid8110.log: SIGBUS (0x7)" in told(BEGUN, ORDINARY, *crash)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("/opt/kafka/bin/start.sh: line 12:  4711 Bus error               (core dumped) java kafka.Kafka", "java-crashed-on"),
        ("/opt/kafka/bin/start.sh: line 12:  4711 Segmentation fault      (core dumped) java kafka.Kafka", "java-crashed"),
        ("/opt/kafka/bin/start.sh: line 12:  4711 Aborted                 (core dumped) java kafka.Kafka", "java-crashed"),
        ("Segmentation fault (core dumped)", "java-crashed"),
        ("Bus error (core dumped)", "java-crashed-on"),
        ("/opt/kafka/bin/start.sh: line 12:  4711 Killed                  java -Xmx8g kafka.Kafka", "-"),
    ],
)
def test_a_crash_that_only_the_shell_tells_of_is_no_kill(said: str, kind: str) -> None:
    """As where the JVM had no room for its report, or died before it could."""
    assert named(BEGUN, ORDINARY, said).startswith(kind)
    assert ("it was killed" in told(BEGUN, ORDINARY, said)) is (kind == "-")


@pytest.mark.parametrize(
    "said",
    [
        "[2026-11-20 03:00:13,905] ERROR Shutdown: 3 Aborted transactions (x)",
        "[2026-11-20 03:00:13,905] ERROR Read 7 Bus error counters (x)",
    ],
)
def test_a_crash_is_told_by_a_shell_alone(said: str) -> None:
    assert named(BEGUN, said, ORDINARY) == "-"


def test_a_program_for_which_there_was_no_memory_is_no_death_of_who_called_it() -> None:
    probed = (
        "[2026-11-20 03:00:13,100] ERROR Probe failed (com.acme.Probe)",
        'java.io.IOException: Cannot run program "du": error=12, Cannot allocate memory',
    )
    assert named(BEGUN, *probed, *FRAMES, FATAL, STRANGE) == "-"


def test_a_host_that_is_not_known_counts_although_what_follows_is_told_after_it() -> None:
    resolve = (
        "[2026-11-20 03:00:13,100] ERROR Unable to resolve address: zk-9:2181 (org.apache.zookeeper.client.StaticHostProvider)"
    )
    lines = (resolve, "java.net.UnknownHostException: zk-9", *FRAMES, FATAL, DYING["zookeeper-unreachable"])
    assert named(*lines) == "unknown-host"
    assert "zk-9" in told(*lines)


def test_a_broker_that_was_never_registered_says_what_the_controllers_answered() -> None:
    answer = "Unable to register broker 1 because the controller returned error UNSUPPORTED_VERSION"
    refused = f"[2026-11-20 03:00:05,000] INFO {answer} (x)"
    gone = "[2026-11-20 03:00:13,000] ERROR Shutting down because we were unable to register with the controller quorum. (x)"
    assert named(BEGUN, ORDINARY, gone) == "never-registered"
    assert named(BEGUN, refused, ORDINARY, gone, FATAL) == "registration-unsupported-version"
    assert answer in told(BEGUN, refused, gone)
    assert "it was killed" in told(BEGUN, refused, ORDINARY), "it went on after that"
    handshake = "[2026-11-20 03:00:05,000] ERROR Unable to register broker 1 because of an authentication exception. (x)"
    trace = ("o.a.k.SslAuthenticationException: SSL handshake failed", DYING["certificate-out-of-date"])
    assert "Renew it" in ending_of((BEGUN, handshake, *trace, gone)).fix


CONNECTING = "[2026-11-20 03:00:12,000] WARN Error connecting to node kafka-c1:9093 (id: 3001 rack: null) (x.NetworkClient)"
OF_ZOOKEEPER = (
    "[2026-11-20 03:00:12,000] WARN Session 0x0 for server zk1/10.0.0.1:2181, Closing socket connection. Attempting reconnect "
    "except it is a SessionExpiredException. (org.apache.zookeeper.ClientCnxn)"
)
TIMED_OUT = "[2026-11-20 03:00:13,000] ERROR Fatal error during KafkaServer startup. Prepare to shutdown (kafka.server.X)"
CUT_OFF = {told.name: told.sample for told in UNCONNECTED} | {
    name: DYING[name] for name in ("machine-out-of-files", "too-many-open-files", "unknown-host", "certificate-out-of-date")
}


@pytest.mark.parametrize("kind", CUT_OFF)
@pytest.mark.parametrize("head", [CONNECTING, OF_ZOOKEEPER], ids=["peer", "ZooKeeper"])
def test_who_gives_up_waiting_is_told_with_what_kept_it_from_the_other(kind: str, head: str) -> None:
    lines = (BEGUN, head, CUT_OFF[kind], *FRAMES, ORDINARY, TIMED_OUT, DYING["zookeeper-unreachable"], *FRAMES)
    assert named(*lines) == kind
    assert "Timed out waiting for connection" in told(*lines)
    assert "hen start" in ending_of(lines).fix
    assert CUT_OFF[kind].split(": ")[-1] in told(*lines)
    assert head.split(" (")[0][-20:-1] in told(*lines)
    assert unconnected_in(list(said_in(lines[1:2]))) is None, "an exception tells"


def test_what_the_controllers_answered_counts_before_a_connection_that_failed_meanwhile() -> None:
    answer = (
        "[2026-11-20 03:00:05,000] INFO Unable to register broker 1 because the controller returned error UNSUPPORTED_VERSION"
    )
    gone = "[2026-11-20 03:00:13,000] ERROR Shutting down because we were unable to register with the controller quorum. (x)"
    cut_off = (CONNECTING, CUT_OFF["no-local-port"])
    unreached = "[2026-11-20 03:00:12,500] WARN Connection to node 3001 (kafka-c1/10.0.0.1:9093) could not be established. (x)"
    assert named(BEGUN, answer, *cut_off, gone) == "registration-unsupported-version"
    assert named(BEGUN, *cut_off, unreached, gone) == "no-local-port"
    assert named(BEGUN, unreached, gone) == "peer-unreachable"
    of_a_client = [line.replace("WARN ", "WARN [Producer clientId=a] ") for line in (unreached, cut_off[0])]
    assert named(BEGUN, *of_a_client, *cut_off[1:], gone) == "never-registered", "a client inside its JVM"


@pytest.mark.parametrize(
    "thrown",
    [
        'java.lang.NullPointerException: Cannot invoke "String.indexOf(String)" because "connectString" is null',
        "kafka.zookeeper.ZooKeeperClientTimeoutException: Timed out waiting for connection while in state: CONNECTING",
    ],
)
def test_zookeepers_authorizer_in_the_file_of_a_node_in_kraft_mode_is_to_be_replaced(thrown: str) -> None:
    """Neither is ZooKeeper to be mended for it, nor does zookeeper.connect go back into the file."""
    head = "[2026-11-20 03:00:13,000] ERROR [{0} id=1] Fatal error during {1} startup. Prepare to shutdown (kafka.server.{0})"
    configured = "\tat kafka.security.authorizer.AclAuthorizer.configure(AclAuthorizer.scala:203)"
    startup = "\tat kafka.server.{}.startup({}.scala:381)"
    of_kraft = (head.format("BrokerServer", "broker"), thrown, configured, startup.format("BrokerServer", "BrokerServer"))
    assert named(BEGUN, *of_kraft) == "authorizer-of-zookeeper"
    assert "StandardAuthorizer" in ending_of((BEGUN, *of_kraft)).expected
    of_zookeeper = (head.format("KafkaServer", "KafkaServer"), thrown, configured, startup.format("KafkaServer", "KafkaServer"))
    assert named(BEGUN, *of_zookeeper) != "authorizer-of-zookeeper"


OF_A_LOGIN = "Caused by: javax.security.auth.login.LoginException: "
OF_KAFKA = "org.apache.kafka.common.KafkaException: javax.security.auth.login.LoginException: "


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (
            "Could not login: the client is being asked for a password, but the Kafka client code does not currently support "
            "obtaining a password from the user. not available to garner  authentication information from the user",
            "kerberos-keytab",
        ),
        ("Client not found in Kerberos database (6)", "kerberos-principal"),
        ("Message stream modified (41)", "kerberos-encryption"),
        ("Encryption type AES256 CTS mode with HMAC SHA1-96 is not supported/enabled", "kerberos-encryption"),
        ("Cannot locate KDC", "kerberos-unreached"),
        ("No LoginModule found for software.amazon.msk.auth.iam.IAMLoginModule", "class-not-found"),
    ],
)
def test_a_login_that_fails_at_the_start_is_told_by_its_reason(words: str, kind: str) -> None:
    assert named(BEGUN, TIMED_OUT, f"{OF_KAFKA}{words}", *FRAMES, f"{OF_A_LOGIN}{words}") == kind


OF_QUORUM = "the quorum member's saslToken is null."


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        (
            "ERROR An error: (java.security.PrivilegedActionException: javax.security.sasl.SaslException: GSS initiate failed "
            "[Caused by GSSException: No valid credentials provided (Mechanism level: Server not found in Kerberos database "
            "(7) - LOOKING_UP_SERVER)]) occurred when evaluating Zookeeper Quorum Member's  received SASL token. Zookeeper "
            "Client will go to AUTH_FAILED state. (org.apache.zookeeper.client.ZooKeeperSaslClient)",
            "kerberos-principal",
            "Server not found in Kerberos database (7)",
        ),
        (
            "ERROR SASL authentication with Zookeeper Quorum member failed. (org.apache.zookeeper.ClientCnxn)\n"
            f"javax.security.sasl.SaslException: Error in authenticating with a Zookeeper Quorum member: {OF_QUORUM}",
            "zookeeper-login-failed",
            "SASL authentication with Zookeeper Quorum member failed.",
        ),
    ],
)
def test_a_login_at_zookeeper_that_fails_is_told_with_what_it_failed_at(said: str, kind: str, words: str) -> None:
    lines = (BEGUN, *f"[2026-11-20 03:00:12,000] {said}".split("\n"), TIMED_OUT, DYING["zookeeper-login-failed"], *FRAMES)
    assert named(*lines) == kind
    assert words in told(*lines)
    assert "Auth failed" in told(*lines)


def test_a_token_that_was_not_fetched_is_told_with_what_the_login_said_before() -> None:
    said = "[2026-11-20 03:00:12,900] ERROR java.net.ConnectException: Connection refused (x.OAuthBearerLoginModule)"
    words = "An internal error occurred while retrieving token from callback handler"
    lines = (BEGUN, said, "java.io.IOException: java.net.ConnectException: Connection refused", TIMED_OUT, f"{OF_KAFKA}{words}")
    assert named(*lines) == "token-not-fetched"
    assert "ConnectException: Connection refused" in told(*lines)


def test_the_errors_of_an_end_are_its_words_and_else_the_lines_as_they_are() -> None:
    assert words_of((BEGUN, ORDINARY, FATAL, STRANGE, *FRAMES, ORDINARY)) == (STRANGE,)
    assert words_of((BEGUN, ORDINARY, *FRAMES)) == (BEGUN, ORDINARY)
    assert words_of((FATAL, SIGTERM, ENDED)) == (FATAL, SIGTERM, ENDED)


def test_a_clock_that_was_set_back_makes_no_new_error_an_old_one() -> None:
    """The end of summer time: the hour comes twice, in the log as well."""
    before = "[2026-10-25 02:59:50,000] INFO all is well (x)"
    after = "[2026-10-25 02:00:01,000] ERROR Shutdown broker because all log dirs in /data/1 have failed (kafka.log.LogManager)"
    assert named(BEGUN, before, after, "java.io.IOException: No space left on device") == "disk-full"
    old = before.replace("INFO all is well", "ERROR Shutdown broker because all log dirs in /data/1 have failed")
    long_after = "[2026-10-25 02:10:00,000] INFO all is well (x)"
    assert named(BEGUN, old, after.replace("ERROR Shutdown", "INFO all"), long_after) == "-"


def test_a_log_that_has_nothing_below_a_warning_tells_no_kill() -> None:
    warned = "[2026-11-20 03:00:13,900] WARN Unexpected error from /10.0.0.9 (org.apache.kafka.common.network.Selector)"
    assert "it was killed" not in told(warned)
    assert "cannot distinguish an orderly stop from a kill" in told(warned)
    assert "No space left" in told(warned, FATAL, "java.io.IOException: No space left on device")


def test_of_lines_without_a_time_that_is_known_it_is_said() -> None:
    begun = "08:00:00.000 [main] INFO Registered kafka:type=kafka.Log4jController MBean (kafka.utils.X)"
    failed = "08:10:00.000 [main] ERROR Error while reading (x)"
    ordinary = [f"12:00:{number:02}.000 [main] INFO Rolled new log segment (kafka.log.UnifiedLog)" for number in range(60)] * 2
    assert "Its layout is not known" in told(begun, failed, "java.io.IOException: No space left on device")
    assert "No space left" not in told(begun, failed, "java.io.IOException: No space left on device", *ordinary)
    assert "Its layout is not known" not in told("Error: Could not find or load main class kafka.Kafka")


def test_a_damaged_file_is_named() -> None:
    """By it one knows a partition from the metadata log, and may see that somebody has emptied it."""
    path = "/data/3001/__cluster_metadata-0/00000000000000000000.log"
    said = f"CorruptRecordException: Found record size 0 smaller than minimum record overhead (14) in file {path}."
    found = death_in(
        ("ERROR Encountered fatal fault: Unexpected error in raft IO thread", f"org.apache.kafka.common.errors.{said}")
    )
    assert found is not None
    assert path in found.quote


def test_of_a_jvm_that_ends_before_kafka_begins_the_file_is_named() -> None:
    """What stands after the word password is masked elsewhere; of these words it is known to be a path."""
    said = (
        "Error: Password file read access must be restricted: /etc/kafka/jmxremote.password",
        "jdk.internal.agent.AgentConfigurationError",
        "\tat jdk.management.agent/sun.management.jmxremote.ConnectorBootstrap.checkPasswordFile(Unknown Source)",
    )
    ending = ending_of_started(said)
    assert ending.observed.endswith("must be restricted: /etc/kafka/jmxremote.password")
    assert "chmod 600" in ending.fix
