"""Passwords as Kafka's brokers encrypt them in ZooKeeper (EncryptingPasswordEncoder, 3.9)."""

import base64

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC
from cryptography.hazmat.primitives.padding import PKCS7


def encrypted(password: str, secret: str, iv: bytes = b"i" * 16) -> str:
    """Under `password.encoder.secret`. `iv`: 16 bytes."""
    key = PBKDF2HMAC(SHA512(), 16, b"salt", 4096).derive(secret.encode())
    padder, encryptor = PKCS7(128).padder(), Cipher(algorithms.AES(key), modes.CBC(iv)).encryptor()
    hidden = encryptor.update(padder.update(password.encode()) + padder.finalize()) + encryptor.finalize()
    salt, told, hidden64 = (base64.b64encode(value).decode() for value in (b"salt", iv, hidden))
    return (
        f"encryptedPassword:{hidden64},keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,"
        f"keyLength:128,salt:{salt},iterations:4096,initializationVector:{told},"
        f"passwordLength:{len(password.encode('utf-16-le')) // 2}"
    )
