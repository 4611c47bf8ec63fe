"""With authentication: one person asks with a key, another decides on the page, in a real Chromium."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, expect
from temporalio.testing import WorkflowEnvironment

from domain.zk_to_kraft.phases import Phase
from playground.ports import PortLease
from playground.services import Program, Services
from playground.wanted import before

pytestmark = pytest.mark.browser

WITHIN = 60_000


@pytest.fixture
async def guarded(tmp_path: Path, temporal: WorkflowEnvironment, ledger: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the API as a process of its own, with authentication, that brings the first admin's key."""
    key_file = tmp_path / "first-key"
    settings = {"KEEPERLESS_AUTH": "on", "KEEPERLESS_FIRST_KEY_FILE": str(key_file)}
    address = str(temporal.client.service_client.config.target_host)
    with PortLease(1) as lease:
        services = Services(tmp_path, address, lease.take(), extra_environment=settings)
        try:
            services.start(Program.API)
            services.await_ready()
            admin = {"Authorization": f"Bearer {key_file.read_text().strip()}"}
            async with httpx.AsyncClient(base_url=services.api_url, headers=admin, trust_env=False, timeout=60) as http:
                yield http
        finally:
            services.stop([Program.API])


async def key_of(http: httpx.AsyncClient, principal: str, *roles: str) -> str:
    made = await http.post("/keys", json={"principal": principal, "roles": list(roles)})
    assert made.status_code == 201, made.text
    return str(made.json()["key"])


async def signed_in(browser: Browser, url: str, key: str, path: str) -> Any:
    """A page of a person of their own, who was led to the key and back."""
    context = await browser.new_context()
    context.set_default_timeout(WITHIN)
    page = await context.new_page()
    await page.goto(f"{url}{path}")
    await page.get_by_label("API key or token").fill(key)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page).to_have_url(f"{url}{path}", timeout=WITHIN)
    return page


async def begin(world: Any, http: httpx.AsyncClient, key: str) -> str:
    """The path of a migration that the key's owner asked for, and whose gate is open."""
    await world.start_workflow_worker()
    await world.start_activity_workers(is_asked=True)
    await world.start_checks_worker()
    await world.lead_to(Phase.SOAK)
    await world.book.put_cluster(before(world.cluster.spec), datetime.now(UTC))
    body = world.asked
    answer = await http.post("/migrations", json=body, headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 202, answer.text
    world.migration_id = answer.json()["id"]
    await world.until_gate()
    return f"/migrations/{world.migration_id}"


async def test_one_asks_and_another_approves_on_the_page(small: Any, guarded: httpx.AsyncClient, chromium: Browser) -> None:
    url = str(guarded.base_url)
    olga, anna = await key_of(guarded, "olga", "operator", "approver"), await key_of(guarded, "anna", "approver")
    path = await begin(small, guarded, olga)

    page = await signed_in(chromium, url, olga, path)
    await expect(page.locator("#who")).to_contain_text("olga (approver, operator)")
    await expect(page.locator(".gate")).to_contain_text("another person has to approve")
    await expect(page.get_by_role("button", name="Approve finalize")).to_have_count(0)
    gate = (await small.progress()).gate
    body = {"gate": "finalize", "decision": "approve", "reason": "mine", "evidence_hash": gate.evidence_hash}
    sent = "(b) => fetch(location.pathname + '/approvals', {method: 'POST', headers: {'Content-Type': 'application/json'}, \
        body: JSON.stringify(b)}).then((a) => a.json())"
    assert (await page.evaluate(sent, body))["code"] == "own-request"

    page = await signed_in(chromium, url, anna, path)
    await expect(page.get_by_role("button", name="Roll back")).to_have_count(0)
    await page.locator("#gate-finalize").get_by_label("Reason").fill("all reports are clean")
    await page.get_by_role("button", name="Approve finalize").click()
    await expect(page.locator("#headline")).to_contain_text("succeeded", timeout=WITHIN)
    await expect(page.locator("#events")).to_contain_text("anna approved finalize: all reports are clean")
    await expect(page.locator("#events")).to_contain_text("was refused: own-request")
    await page.get_by_role("button", name="Sign out").click()
    await expect(page).to_have_url(f"{url}/session")
    await page.goto(f"{url}{path}")
    await expect(page.get_by_label("API key or token")).to_be_visible()


async def test_an_admin_breaks_glass_in_red(small: Any, guarded: httpx.AsyncClient, chromium: Browser) -> None:
    admin = await key_of(guarded, "zoe", "admin")
    path = await begin(small, guarded, admin)
    page = await signed_in(chromium, str(guarded.base_url), admin, path)
    await page.locator("#gate-finalize").get_by_label("Reason").fill("the approver is ill")
    await page.get_by_role("button", name="Break glass: approve finalize alone").click()
    await expect(page.locator("#headline")).to_contain_text("succeeded", timeout=WITHIN)
    await expect(page.locator("li.alarm").filter(has_text="zoe approved finalize")).to_contain_text("GLASS BROKEN")
