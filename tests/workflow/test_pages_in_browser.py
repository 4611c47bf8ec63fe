"""The pages in a real Chromium: the API as a process, the real workflow and activities behind it, a simulated cluster.

`KEEPERLESS_SHOTS` names a folder for pictures of what was seen.
"""

import json
import os
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Route, expect
from temporalio.testing import WorkflowEnvironment

from domain.records import Measured, Sample
from domain.zk_to_kraft.phases import Phase
from playground.ports import PortLease
from playground.services import Program, Services
from playground.wanted import before

pytestmark = pytest.mark.browser

SHOTS = os.environ.get("KEEPERLESS_SHOTS")
WITHIN = 60_000
"""Milliseconds: for two cores that do much else."""
ADA = {"principal": "ada", "roles": ["approver"], "is_authenticated": True}
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>'\"&amp; {{ 7*7 }}"
expect.set_options(timeout=WITHIN)


@pytest.fixture
async def url(tmp_path: Path, temporal: WorkflowEnvironment, ledger: Any) -> AsyncIterator[str]:
    """The API as a process of its own, on the world's ledger and Temporal."""
    address = str(temporal.client.service_client.config.target_host)
    with PortLease(1) as lease:
        services = Services(tmp_path, address, lease.take())
        try:
            services.start(Program.API)
            services.await_ready()
            yield services.api_url
        finally:
            services.stop([Program.API])


class Said:
    """What a browser complains of: errors of scripts, violations of the policy of what a page may load, dialogs."""

    def __init__(self, context: BrowserContext) -> None:
        self.complaints: list[str] = []
        context.on("console", self._note)
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        context.on("dialog", lambda dialog: self.complaints.append(f"dialog {dialog.message}"))

    def _note(self, message: ConsoleMessage) -> None:
        # Chromium reports every answer above 399 so; that such answers are shown is what tests here look at.
        if message.type in {"error", "warning"} and not message.text.startswith("Failed to load resource"):
            self.complaints.append(message.text)


@pytest.fixture
async def context(chromium: Browser) -> AsyncIterator[BrowserContext]:
    """A browser window of its own, in which nothing may go wrong."""
    context = await chromium.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(WITHIN)
    said = Said(context)
    yield context
    await context.close()
    assert said.complaints == []


class Seen:
    """A migration's page, and the API beside it."""

    def __init__(self, page: Page, url: str, migration_id: str, world: Any) -> None:
        self.page, self.url, self.id, self.world = page, url, migration_id, world

    @property
    def path(self) -> str:
        return f"{self.url}/migrations/{self.id}"

    async def open(self) -> None:
        await self.page.goto(self.path)

    async def migration(self) -> dict[str, Any]:
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            return dict((await http.get(self.path)).json())

    async def ask(self, what: str, **body: Any) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            return await http.post(f"{self.path}/{what}", json=body)

    async def until_state(self, state: str) -> dict[str, Any]:
        async def found() -> dict[str, Any] | None:
            seen = await self.migration()
            return seen if seen["state"] == state else None

        return dict(await self.world.until(found))

    async def shot(self, name: str) -> None:
        if SHOTS:
            await self.page.screenshot(path=f"{SHOTS}/{name}.png", full_page=True)

    def form(self, name: str) -> Any:
        return self.page.locator(f"form#{name}")


@pytest.fixture
async def seen(small: Any, url: str, context: BrowserContext) -> Seen:
    """A migration whose gate `finalize` is open."""
    await small.start_workflow_worker()
    await small.start_activity_workers(is_asked=True)
    await small.start_checks_worker()
    await small.lead_to(Phase.SOAK)
    await small.book.put_cluster(before(small.cluster.spec), datetime.now(UTC))
    body = small.asked
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        answer = await http.post(f"{url}/migrations", json=body)
    assert answer.status_code == 202, answer.text
    small.migration_id = answer.json()["id"]
    await small.until_gate()
    return Seen(await context.new_page(), url, small.migration_id, small)


def change_a_file(world: Any) -> None:
    """So that the evidence is another one."""
    broker = world.cluster.nodes[1]
    path = broker.spec.properties_file
    file = broker.machine.read(path)
    broker.machine.write(path, type(file)(file.content + b"# a note\n", file.mode, file.uid, file.gid))


async def test_the_list_leads_to_the_page_with_all_that_decides(seen: Seen) -> None:
    page, told = seen.page, await seen.migration()
    await page.goto(seen.url)
    await expect(page).to_have_url(f"{seen.url}/migrations")
    row = page.get_by_role("row").filter(has=page.locator(f'a[href="/migrations/{seen.id}"]'))
    for text in (told["cluster"], "zk-to-kraft", "SOAK", "waiting", "approval"):
        await expect(row).to_contain_text(text)
    await seen.shot("list")
    await row.get_by_role("link").click()
    await expect(page.locator("#headline")).to_contain_text("SOAK")
    [gate] = told["gates"]
    await expect(page.locator(".gate")).to_contain_text(gate["evidence_hash"])
    for report in gate["reports"]:
        await expect(page.locator(f'.gate a[href="{report["url"]}"]')).to_be_visible()
    for node in told["nodes"]:
        await expect(page.locator("#nodes tr", has_text=node["name"])).to_contain_text(node["mode"])
    await expect(page.locator("#phases li")).to_have_count(len(told["phases"]))
    await expect(page.locator("#phases .irreversible")).to_contain_text("No rollback from here on")
    await expect(page.locator("#events li").first).not_to_be_empty()
    await expect(page.locator("#blockers h2")).to_be_visible()
    order = await page.evaluate("[...document.querySelectorAll('main > section')].map((one) => one.id)")
    wanted = ["state", "decide", "control", "rollback", "phases", "nodes", "numbers", "blockers", "events", "links"]
    assert order == wanted
    policy = (await page.request.get(seen.path, headers={"Accept": "text/html"})).headers["content-security-policy"]
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'")


async def test_numbers_are_plotted_with_their_meaning_in_words(seen: Seen) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    for second in range(4):
        numbers = (
            Measured(name="ZkMigrationState", value=1, says="MIGRATION"),
            Measured(name="ZkWriteBehindLag", value=second * 700),
        )
        await seen.world.book.add_sample(seen.id, Sample(at=later + timedelta(seconds=second), numbers=numbers))
    await seen.open()
    for name, value in (("ZkMigrationState", "MIGRATION"), ("ZkWriteBehindLag", "2100")):
        figure = seen.page.locator("figure", has_text=name)
        await expect(figure.locator("figcaption")).to_have_text(f"{name}: {value}")
        await expect(figure.get_by_role("img")).to_have_attribute("aria-label", re.compile(f"Newest: {value}"))
        box = await figure.locator("svg").bounding_box()
        assert box is not None
        assert box["width"] > 300


async def test_a_gate_is_approved_by_keyboard_alone(seen: Seen) -> None:
    page = seen.page
    await seen.open()
    await expect(page.locator("#blockers h2")).to_be_visible()
    for _ in range(60):
        await page.keyboard.press("Tab")
        if await page.evaluate("document.activeElement.id") == "gate-finalize-reason":
            break
    outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "what has the focus shows it"
    await page.keyboard.type("all reports are clean")
    await page.keyboard.press("Tab")
    assert await page.evaluate("document.activeElement.textContent.trim()") == "Approve finalize"
    await page.keyboard.press("Enter")
    await expect(page.locator("#headline")).to_contain_text("succeeded")
    await expect(page.locator("form, [data-into=rollback]")).to_have_count(0)
    await expect(page.locator("#events")).to_contain_text("all reports are clean")
    commands = (await page.request.get(f"{seen.path}/commands")).json
    [approval] = [one for one in (await commands())["items"] if one["kind"] == "approve"]
    assert approval["reason"] == "all reports are clean"
    await expect(page.locator("#phases .current")).to_have_count(0)
    await expect(page.locator("#blockers")).to_be_hidden()
    await seen.shot("succeeded")


async def test_a_hash_that_is_stale_is_refused_and_shown(seen: Seen) -> None:
    await seen.open()
    form = seen.form("gate-finalize")
    shown = json.loads(await form.get_attribute("data-body"))["evidence_hash"]
    await form.get_by_label("Reason").fill("it looked well")
    change_a_file(seen.world)
    await seen.world.until_evidence(lambda found: found != shown)
    await expect(seen.page.locator("#decide .outdated")).to_contain_text("changed since you began to write")
    await expect(seen.page.locator(".gate")).to_contain_text(shown)
    await form.get_by_role("button", name="Approve").click()
    await expect(form.locator(".answer strong")).to_have_text("The migration refused the command.")
    await expect(form.locator(".answer")).to_contain_text("evidence")
    assert await form.get_by_label("Reason").input_value() == "it looked well"
    await seen.shot("stale")
    await seen.page.get_by_role("button", name="Show what is new").click()
    await expect(seen.page.locator(".gate")).not_to_contain_text(shown)
    assert await form.get_by_label("Reason").input_value() == "it looked well"
    assert (await seen.migration())["state"] == "waiting"


async def test_a_rejection_holds_and_a_resume_goes_on(seen: Seen) -> None:
    await seen.open()
    await expect(seen.form("resume")).to_have_count(0)
    await seen.form("gate-finalize").get_by_label("Reason").fill("not tonight")
    await seen.page.get_by_role("button", name="Reject").click()
    await expect(seen.page.locator("#headline")).to_contain_text("held")
    await expect(seen.page.locator("#state")).to_contain_text("not tonight")
    await expect(seen.form("hold")).to_have_count(0)
    await seen.form("resume").get_by_label("Reason").fill("now")
    await seen.page.get_by_role("button", name="Resume").click()
    await expect(seen.page.locator("#headline")).to_contain_text("waiting")
    await seen.form("hold").get_by_label("Reason").fill("lunch")
    await seen.page.get_by_role("button", name="Hold").click()
    await expect(seen.page.locator("#headline")).to_contain_text("held")
    assert (await seen.migration())["hold"]["reason"] == "lunch"


async def test_in_a_hold_an_approval_is_withdrawn_or_begun_by_name(seen: Seen) -> None:
    await seen.ask("hold", reason="lunch")
    await seen.until_state("held")
    await seen.open()
    page = seen.page
    for reason in ("the first", "the second"):
        await seen.form("gate-finalize").get_by_label("Reason").fill(reason)
        await page.get_by_role("button", name="Approve finalize").click()
        withdrawing = page.locator("form[id^=withdraw]")
        if reason == "the first":
            await withdrawing.get_by_label("Reason").fill("too early")
            await page.get_by_role("button", name="Withdraw").click()
            await expect(withdrawing).to_have_count(0)
            await expect(seen.form("gate-finalize")).to_be_visible()
    await expect(page.locator("#decide")).to_contain_text("armed")
    await seen.form("resume").get_by_label("Reason").fill("lunch is over")
    await seen.shot("armed")
    await page.get_by_role("button", name="Resume and begin finalize").click()
    await expect(page.locator("#headline")).to_contain_text("succeeded")


async def test_a_rollback_shows_its_preview_first(seen: Seen) -> None:
    page = seen.page
    await seen.open()
    await expect(page.get_by_role("button", name="Roll back as shown")).to_have_count(0)
    await page.get_by_role("button", name="Roll back").click()
    await expect(page.locator("#rollback h2")).to_have_text("Rollback preview")
    preview = await (await page.request.get(f"{seen.path}/rollback-preview")).json()
    await expect(page.locator("#rollback ol li")).to_have_count(len(preview["steps"]))
    await seen.shot("rollback")
    await page.locator("#rollback").get_by_label("Reason").fill("too slow")
    await page.get_by_role("button", name="Roll back as shown").click()
    await expect(page.locator("#headline")).to_contain_text("reverted")
    await expect(page.locator("#rollback")).to_be_hidden()
    [command] = (await (await page.request.get(f"{seen.path}/commands")).json())["items"]
    assert (command["kind"], command["preview_hash"]) == ("rollback", preview["preview_hash"])


async def test_what_others_wrote_is_shown_as_text(seen: Seen) -> None:
    assert (await seen.ask("hold", reason=HOSTILE)).status_code == 202
    await seen.until_state("held")
    await seen.open()
    await expect(seen.page.locator("#state")).to_contain_text(HOSTILE)
    await expect(seen.page.locator("#events")).to_contain_text(HOSTILE)
    await expect(seen.page.locator("main img")).to_have_count(0)


async def test_an_update_leaves_what_is_typed_and_the_focus(seen: Seen) -> None:
    await seen.open()
    field = seen.form("gate-finalize").get_by_label("Reason")
    await field.press_sequentially("half a sen")
    scrolled = await seen.page.evaluate("scrollY")
    refused = await seen.ask("approvals", gate="finalize", decision="approve", reason="a guess", evidence_hash="0" * 64)
    assert refused.status_code == 409
    await expect(seen.page.locator("#events")).to_contain_text("approve by local (unauthenticated) was refused")
    await field.press_sequentially("tence")
    assert await field.input_value() == "half a sentence"
    assert await seen.page.evaluate("document.activeElement.id") == "gate-finalize-reason"
    assert await seen.page.evaluate("scrollY") == scrolled


async def test_a_change_is_told_to_who_does_not_see_it(seen: Seen) -> None:
    await seen.open()
    await expect(seen.page.locator("#headline")).to_contain_text("waiting")
    await seen.ask("hold", reason="lunch")
    news = seen.page.get_by_role("status")
    await expect(news).to_contain_text("Now: held")
    await expect(news).to_have_attribute("aria-live", "polite")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_page_fits_a_phone_and_the_dark(seen: Seen, scheme: Any) -> None:
    page = seen.page
    await page.emulate_media(color_scheme=scheme)
    await seen.open()
    await expect(page.locator("#blockers h2")).to_be_visible()
    await seen.shot(f"page-{scheme}")
    await page.set_viewport_size({"width": 360, "height": 740})
    await seen.shot(f"phone-{scheme}")
    assert await page.evaluate("document.documentElement.scrollWidth") <= 360
    ground, ink = [await page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("backgroundColor", "color")]
    is_ground_dark = sum(map(int, re.findall(r"\d+", ground)[:3])) < sum(map(int, re.findall(r"\d+", ink)[:3]))
    assert is_ground_dark == (scheme == "dark")
    await page.goto(f"{seen.url}/migrations")
    await seen.shot(f"phone-list-{scheme}")
    assert await page.evaluate("document.documentElement.scrollWidth") <= 360


async def test_without_scripts_all_is_there_to_read(chromium: Browser, seen: Seen) -> None:
    context = await chromium.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(seen.path)
    [gate] = (await seen.migration())["gates"]
    await expect(page.locator(".gate")).to_contain_text(gate["evidence_hash"])
    await expect(page.locator("#nodes tbody tr").first).to_be_visible()
    for button in await page.locator("button, textarea").all():
        await expect(button).to_be_hidden()
    await expect(page.get_by_text("needs JavaScript")).to_be_visible()
    await page.get_by_role("link", name="Rollback preview").click()
    await expect(page.get_by_role("heading", name="Rollback preview")).to_be_visible()
    await expect(page.get_by_role("button", name="Roll back as shown")).to_be_hidden()
    await context.close()


async def test_a_problem_is_a_page_and_a_page_can_be_lost(seen: Seen) -> None:
    page = seen.page
    await page.goto(f"{seen.url}/migrations/01a00000-0000-7000-8000-000000000000")
    await expect(page.get_by_role("heading")).to_have_text("There is no such migration")
    await seen.open()
    await page.route("**/migrations/*", lambda route: route.abort())
    await expect(page.get_by_role("status")).to_contain_text("may be out of date")
    await page.unroute("**/migrations/*")
    await expect(page.get_by_role("status")).to_contain_text("Connected again")


@pytest.mark.parametrize(
    ("wanted", "reached"),
    [
        ("/migrations?limit=7", "/migrations?limit=7"),
        ("//else.example", "/migrations"),
        ("/%09/else.example", "/migrations"),  # a browser drops tabs from an address
        ("https://else.example", "/migrations"),
    ],
)
async def test_a_key_signs_in_and_leads_to_a_page_of_ours(seen: Seen, wanted: str, reached: str) -> None:
    """What the API answers about sessions is played here."""
    page, given = seen.page, []

    async def session(route: Route) -> None:
        if route.request.method == "POST":
            given.append((route.request.post_data_json, route.request.headers.get("idempotency-key")))
            await route.fulfill(status=201, json=ADA)
        elif "html" in route.request.headers["accept"]:
            await route.continue_()
        else:
            signed_in = {"status": 200, "json": ADA}
            await route.fulfill(**(signed_in if given else {"status": 401, "json": {}}))

    await page.route("**/session*", session)
    await page.goto(f"{seen.url}/session?next={wanted}")
    await page.get_by_label("API key or token").fill("kl_example_not-a-real-key")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page).to_have_url(f"{seen.url}{reached}")
    assert given[0][0] == {"key": "kl_example_not-a-real-key"}
    assert given[0][1]
    await expect(page.locator("#who")).to_contain_text("ada (approver)")


async def test_an_order_without_a_whole_answer_keeps_its_key(seen: Seen) -> None:
    page, given = seen.page, []

    async def sign_in(route: Route) -> None:
        if route.request.method != "POST":
            await route.continue_()
            return
        given.append(route.request.headers["idempotency-key"])
        answers = [(503, "ledger-unavailable"), (409, "call-under-way"), (401, "unauthenticated"), (401, "unauthenticated")]
        status, code = answers[len(given) - 1]
        await route.fulfill(status=status, json={"title": code, "code": code})

    await page.route("**/session*", sign_in)
    await page.goto(f"{seen.url}/session")
    await page.get_by_label("API key or token").fill("kl_example_not-a-real-key")
    for told in ("ledger-unavailable", "call-under-way", "unauthenticated"):
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.locator(".answer")).to_contain_text(told)
    assert len(set(given)) == 1
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.locator("form[aria-busy]")).to_have_count(0)
    assert given[3] != given[0]
