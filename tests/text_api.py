"""The text functions of libferry (include/ferry/text.h), called through ctypes."""

import ctypes
import json
import os

from support import FERRY

LIBRARY = ctypes.CDLL(FERRY.parent / "libferry.so")
WRITE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t)


class Error(ctypes.Structure):
    _fields_ = [
        ("status", ctypes.c_int),
        ("where", ctypes.c_char * 512),
        ("message", ctypes.c_char * 1024),
    ]


class EncodeConfig(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("special_tokens", ctypes.c_bool),
        ("pair", ctypes.c_char_p),
        ("pair_length", ctypes.c_size_t),
        ("truncate", ctypes.c_bool),
        ("pad", ctypes.c_bool),
    ]


class EncodingRecord(ctypes.Structure):
    _fields_ = [
        ("count", ctypes.c_size_t),
        ("ids", ctypes.POINTER(ctypes.c_uint32)),
        ("type_ids", ctypes.POINTER(ctypes.c_uint32)),
        ("offsets", ctypes.POINTER(ctypes.c_size_t)),
        ("special", ctypes.POINTER(ctypes.c_ubyte)),
        ("attention_mask", ctypes.POINTER(ctypes.c_ubyte)),
    ]


class FerryError(Exception):
    pass


class Encoding:
    def __init__(self, record: EncodingRecord):
        count = record.count
        flat = record.offsets[: 2 * count]
        self.ids = record.ids[:count]
        self.type_ids = record.type_ids[:count]
        self.offsets = list(zip(flat[::2], flat[1::2]))
        self.special_tokens_mask = record.special[:count]
        self.attention_mask = record.attention_mask[:count]


class Tokenizer:
    def __init__(self, path):
        self.handle = ctypes.c_void_p()
        self.error = Error()
        self.call(LIBRARY.ferry_tokenizer_open, os.fsencode(path), ctypes.byref(self.handle))

    def call(self, function, *arguments):
        if function(*arguments, ctypes.byref(self.error)) != 0:
            place, message = (part.decode(errors="replace") for part in (self.error.where, self.error.message))
            raise FerryError(f"{place}: {message}")

    def encode(self, text, pair=None, special_tokens=True, truncate=False, pad=False) -> Encoding:
        config = EncodeConfig()
        LIBRARY.ferry_encode_config_init(ctypes.byref(config))
        config.special_tokens, config.truncate, config.pad = special_tokens, truncate, pad
        if pair is not None:
            config.pair = pair.encode()
            config.pair_length = len(config.pair)
        data = text.encode() if isinstance(text, str) else text
        record = ctypes.POINTER(EncodingRecord)()
        size = ctypes.c_size_t(len(data))
        self.call(
            LIBRARY.ferry_tokenizer_encode, self.handle, data, size, ctypes.byref(config), ctypes.byref(record)
        )
        encoding = Encoding(record.contents)
        LIBRARY.ferry_encoding_free(record)
        return encoding

    def decode(self, ids, skip_special_tokens=True) -> str:
        pieces = []
        write = WRITE(lambda _, text, length: pieces.append(ctypes.string_at(text, length)))
        array = (ctypes.c_uint32 * len(ids))(*ids)
        count, skip = ctypes.c_size_t(len(ids)), ctypes.c_bool(skip_special_tokens)
        self.call(LIBRARY.ferry_tokenizer_decode, self.handle, array, count, skip, write, None)
        return b"".join(pieces).decode()

    def stream(self, ids, skip_special_tokens=True) -> list[str]:
        """What each id adds, and at the end what was left."""
        pieces = []
        write = WRITE(lambda _, text, length: pieces.append(ctypes.string_at(text, length)))
        stream = ctypes.c_void_p()
        skip = ctypes.c_bool(skip_special_tokens)
        self.call(LIBRARY.ferry_text_stream_new, self.handle, skip, ctypes.byref(stream))
        given = []
        try:
            for token in ids:
                self.call(LIBRARY.ferry_text_stream_put, stream, ctypes.c_uint32(token), write, None)
                given.append(b"".join(pieces).decode())
                pieces.clear()
            self.call(LIBRARY.ferry_text_stream_end, stream, write, None)
            given.append(b"".join(pieces).decode())
        finally:
            LIBRARY.ferry_text_stream_free(stream)
        return given

    def __del__(self):
        if self.handle:
            LIBRARY.ferry_tokenizer_close(self.handle)


class ChatConfig(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("add_generation_prompt", ctypes.c_bool),
        ("template_name", ctypes.c_char_p),
        ("tools", ctypes.c_char_p),
        ("variables", ctypes.c_char_p),
    ]


class Chat:
    def __init__(self, path):
        self.handle = ctypes.c_void_p()
        self.error = Error()
        self.call(LIBRARY.ferry_chat_open, os.fsencode(path), ctypes.byref(self.handle))

    call = Tokenizer.call

    def render(self, messages, tools=None, add_generation_prompt=True, template=None, **variables) -> str:
        pieces = []
        write = WRITE(lambda _, text, length: pieces.append(ctypes.string_at(text, length)))
        config = ChatConfig()
        LIBRARY.ferry_chat_config_init(ctypes.byref(config))
        config.add_generation_prompt = add_generation_prompt
        config.template_name = template and template.encode()
        config.tools = json.dumps(tools).encode() if tools is not None else None
        config.variables = json.dumps(variables).encode() if variables else None
        text = json.dumps(messages).encode()
        self.call(LIBRARY.ferry_chat_render, self.handle, text, ctypes.byref(config), write, None)
        return b"".join(pieces).decode()

    def __del__(self):
        if self.handle:
            LIBRARY.ferry_chat_close(self.handle)


for name in ("ferry_chat_close", "ferry_tokenizer_close", "ferry_encoding_free", "ferry_text_stream_free"):
    getattr(LIBRARY, name).restype = None
    getattr(LIBRARY, name).argtypes = [ctypes.c_void_p]
