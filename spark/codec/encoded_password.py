"""Passwords as Kafka's brokers keep them in ZooKeeper: encrypted with a key that `password.encoder.secret` gives.

    keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,keyLength:128,salt:…,iterations:4096,
    initializationVector:…,encryptedPassword:…,passwordLength:12

Source: EncryptingPasswordEncoder, CbcParamsEncoder and GcmParamsEncoder of Kafka 3.9. Without a secret Kafka's encoder is one
that does nothing, and then the password itself lies there.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.padding import PKCS7

PARTS = frozenset({"keyFactoryAlgorithm", "cipherAlgorithm", "keyLength", "salt", "iterations", "encryptedPassword"})
KEY_FACTORY = "PBKDF2WithHmac"
CBC, GCM = "AES/CBC/PKCS5Padding", "AES/GCM/NoPadding"
AES_BLOCK_BITS = 128
KEY_BITS = (128, 192, 256)
MOST_ITERATIONS = 10_000_000
"""Kafka's default is 4096. A damaged number must not keep a worker busy for days."""


class Undecodable(ValueError):
    """Not with this secret, or not with a cipher that is known here. Never tells any of the password."""


def is_encoded(text: str) -> bool:
    return _parts(text).keys() >= PARTS


def decoded(text: str, secret: str) -> str:
    """The password. `Undecodable` where it cannot be had."""
    parts = _parts(text)
    try:
        password = _decrypted(parts, secret).decode()
        is_whole = len(password.encode("utf-16-le")) // 2 == int(parts.get("passwordLength", "-1"))
    except (KeyError, ValueError, binascii.Error, InvalidTag):
        raise Undecodable("the encoder secret does not fit, or the value is damaged") from None
    if not is_whole:
        raise Undecodable("the encoder secret does not fit: what comes out has another length")
    return password


def _parts(text: str) -> Mapping[str, str]:
    return {name.strip(): value.strip() for name, _, value in (part.rpartition(":") for part in text.split(","))}


def _decrypted(parts: Mapping[str, str], secret: str) -> bytes:
    key, iv, hidden = _key(parts, secret), _bytes(parts["initializationVector"]), _bytes(parts["encryptedPassword"])
    match parts["cipherAlgorithm"]:
        case c if c == CBC:
            decryptor = Cipher(algorithms.AES(key), modes.CBC(iv)).decryptor()
            unpadder = PKCS7(AES_BLOCK_BITS).unpadder()
            return unpadder.update(decryptor.update(hidden) + decryptor.finalize()) + unpadder.finalize()
        case c if c == GCM:
            return AESGCM(key).decrypt(iv, hidden, None)
        case other:
            raise Undecodable(f"the cipher {other} is not known here")


def _key(parts: Mapping[str, str], secret: str) -> bytes:
    """`PBKDF2WithHmacSHA512` and its like; Kafka takes SHA-512 unless told otherwise."""
    factory = parts["keyFactoryAlgorithm"]
    if not factory.startswith(KEY_FACTORY):
        raise Undecodable(f"the key factory {factory} is not known here")
    bits, iterations = int(parts["keyLength"]), int(parts["iterations"])
    if bits not in KEY_BITS or iterations > MOST_ITERATIONS:
        raise Undecodable("the key is longer than any of AES, or takes longer to make than any of Kafka's")
    digest = factory.removeprefix(KEY_FACTORY).lower()
    return hashlib.pbkdf2_hmac(digest, secret.encode(), _bytes(parts["salt"]), iterations, bits // 8)


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
