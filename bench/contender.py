"""One contender's process: `python -m bench.contender NAME INPUTS OWN`. Gets ready; each line it is sent is a round.

Answers are lines of JSON on standard output, which is theirs alone: what libraries print goes to standard error.
"""

import gc
import json
import os
import shutil
import sys
import time
from pathlib import Path

from bench.contenders import BY_NAME, Play


def main() -> None:
    name, inputs, own = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with BY_NAME[name].opened(inputs, own) as play:
        print(json.dumps({"ready": name}), file=answers, flush=True)
        for number, _ in enumerate(sys.stdin):
            print(json.dumps(_round(play, own / f"round-{number}")), file=answers, flush=True)


def _round(play: Play, out: Path) -> dict[str, object]:
    """`seconds` is the play alone."""
    gc.collect()
    begun = time.perf_counter()
    told = play(out)
    seconds = time.perf_counter() - begun
    shutil.rmtree(out, ignore_errors=True)
    return {"seconds": seconds, "told": told}


if __name__ == "__main__":
    main()
