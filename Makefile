# Everything a developer or CI does here. Each target is one command; what it needs is set up first.

PYTHON ?= python3
RUN = .venv/bin/python -m

# Images of containers often set it. Then every program compiles all that it imports at every start: seven seconds of CPU for a
# worker of ours, instead of less than two.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

.PHONY: help
help: ## This list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

.PHONY: setup
setup: ## Fetch and install all that is needed, into .venv and the user's cache; at once when it is there
	@$(PYTHON) -m setup

.PHONY: setup-checks
setup-checks: setup ## Install PySpark too, for the checks (456 MB, once)
	@$(PYTHON) -m setup --checks

.PHONY: demo
demo: setup ## Take a real playground cluster from ZooKeeper to KRaft (STORY=rollback and back, STORY=drift with a drift on the way, STORY=blocked with much in the way, STORY=none only a cluster in ZooKeeper mode to play with, YES=1 approves by itself, KEEP=1 leaves it running)
	@$(RUN) playground.demo $(if $(STORY),--story $(STORY)) $(if $(YES),--yes) $(if $(KEEP),--keep)

.PHONY: demo-start
demo-start: ## Start again what was killed of Temporal and Keeperless's programs, in a demo that runs or was kept
	@$(RUN) playground.demo start

.PHONY: demo-stop
demo-stop: ## Stop what `make demo KEEP=1` or `STORY=none` left running
	@$(RUN) playground.demo stop

# What needs Python only. All other folders of tests/ want more: processes, servers, Spark; a new one too, until it is named here.
QUICK = tests/docs tests/replay tests/unit
# What runs on servers of its own, and what waits for a cluster or for Spark, which want both cores of a small machine.
ADAPTERS = tests/conformance
CLUSTERS = tests/cluster tests/spark
WALKS = tests/unit/test_decide_exhaustive.py tests/unit/test_way_back_exhaustive.py
PROGRAMS = $(WALKS) $(filter-out %__pycache__ $(QUICK) $(ADAPTERS) $(CLUSTERS),$(patsubst %/,%,$(wildcard tests/*/)))
WORKERS ?= 2
# Where tests have to run, the ones on real clusters have to in the runs that have some.
NO_CLUSTER = $(if $(KEEPERLESS_REQUIRE_ALL),KEEPERLESS_REQUIRE_ALL=skips)

.PHONY: test
test: setup ## What needs no server, in a few minutes; the walks over all situations as a sample (TESTS="files", ARGS="-k name" for a part; WORKERS=4 so many at a time)
	@$(NO_CLUSTER) KEEPERLESS_TESTS=quick $(RUN) pytest -n $(WORKERS) --dist worksteal $(or $(TESTS),$(QUICK)) $(ARGS)

.PHONY: test-real
test-real: test-programs test-adapters test-clusters ## All other tests but the slow ones

.PHONY: test-programs
test-programs: setup ## Of these: whole walks, programs of ours, the API and workflows on Temporal
	@$(NO_CLUSTER) $(RUN) pytest -n $(WORKERS) --dist loadfile $(or $(TESTS),$(PROGRAMS)) $(ARGS)

.PHONY: test-adapters
test-adapters: setup ## Of these: adapters on the PostgreSQL, Kafka and ZooKeeper that they adapt
	@$(RUN) pytest -n $(WORKERS) --dist loadfile $(or $(TESTS),$(ADAPTERS)) $(ARGS)

.PHONY: test-clusters
test-clusters: setup-checks ## Of these: Spark, and migrations of real clusters; one test at a time
	@$(RUN) pytest $(or $(TESTS),$(CLUSTERS)) $(ARGS)

.PHONY: chaos
chaos: setup-checks ## The slow tests, two at a time: every way back and every bad day on real clusters, Spark's kills, frozen workers at every call, the model's largest walks (TESTS="ids", ARGS="-k name" for a part of them; WORKERS=0 one at a time)
	@$(RUN) pytest -m chaos -rA -n $(WORKERS) --dist loadgroup --maxschedchunk 1 $(or $(TESTS),tests) $(ARGS)

.PHONY: browser-test
browser-test: setup ## The pages in a real Chromium: /usr/bin/chromium, or the one that CHROMIUM names (SHOTS=folder keeps pictures, ARGS="-k name")
	@KEEPERLESS_SHOTS="$(SHOTS)" $(RUN) pytest -m browser tests/workflow $(ARGS)

.PHONY: up
up: ## Build and start the service in containers, with a cluster to try it on (PROFILE=workers without one); needs Docker
	@sh deploy/secrets.sh
	@sh deploy/with-images.sh docker compose --profile $(or $(PROFILE),demo) up --build --wait

.PHONY: system-test
system-test: setup ## The service in containers: a migration while each of them is killed; OIDC tokens of a real Keycloak; needs Docker, and more where no image registry answers (docs/deployment.md)
	@sh deploy/secrets.sh
	@TESTCONTAINERS_RYUK_DISABLED=true sh deploy/with-images.sh $(RUN) pytest -m system -s tests/system tests/api/test_observability.py $(ARGS)

.PHONY: keycloak-test
keycloak-test: setup ## The part of it that needs no Docker: OIDC tokens of a real Keycloak (its archive of 177 MB is fetched once)
	@$(RUN) pytest -m system -s tests/system/test_keycloak.py $(ARGS)

.PHONY: check
check: lint types layers dependencies ## All checks that start nothing

.PHONY: lint
lint: setup ## Style and likely mistakes
	@$(RUN) ruff check .
	@$(RUN) ruff format --check .

.PHONY: types
types: setup ## Types
	@$(RUN) mypy

.PHONY: layers
layers: setup ## Who may import whom
	@.venv/bin/lint-imports

.PHONY: dependencies
dependencies: setup ## Every import has its dependency, every dependency its import
	@$(RUN) deptry .

.PHONY: audit
audit: setup ## Known vulnerabilities of the locked packages (asks the package index's advisory service)
	@$(RUN) pip_audit --strict --require-hashes --disable-pip -r requirements.lock -r requirements-checks.lock

.PHONY: bench
bench: setup-checks ## How fast the checks are, beside DuckDB, Polars and datacompy on Spark (ARGS="--sizes 1000 --rounds 5")
	@$(RUN) bench.compare $(ARGS)

.PHONY: bench-migration
bench-migration: setup-checks ## How long a whole migration takes, beside a bare script that follows Kafka's guide (ARGS="--rounds 5 --burners 2")
	@$(RUN) bench.migration.compare $(ARGS)

.PHONY: lock
lock: ## Write all requirements*.lock from pyproject.toml (ARGS=--upgrade takes newer versions)
	@$(PYTHON) -m setup.lock $(ARGS)

.PHONY: docs
docs: setup ## Write the generated pages of docs/ anew, and api/openapi.json
	@$(RUN) docs.generate
	@$(RUN) api.openapi
