"""What holds for every test: `KEEPERLESS_REQUIRE_ALL=1` makes a run that left something out a failed run.

For CI. A skip becomes a failure, and the run fails unless at least one test that starts a real cluster has passed.
"""

import os
from collections.abc import Generator

import pytest

IS_ALL_REQUIRED = os.environ.get("KEEPERLESS_REQUIRE_ALL") == "1"
CLUSTER_TESTS_PASSED = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[CLUSTER_TESTS_PASSED] = 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if IS_ALL_REQUIRED:
        _forbid_skip(report)
    if report.when == "call" and report.passed and item.get_closest_marker("cluster"):
        item.config.stash[CLUSTER_TESTS_PASSED] += 1
    return report


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
    return IS_ALL_REQUIRED and not config.option.collectonly and not config.stash[CLUSTER_TESTS_PASSED]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    passed = config.stash[CLUSTER_TESTS_PASSED]
    terminalreporter.write_line(f"on real clusters: {passed} tests passed")
    if _lacks_cluster_tests(config):
        terminalreporter.write_line("KEEPERLESS_REQUIRE_ALL=1: no test on a real cluster has passed, so the run has failed")
