"""The ports: all that activities need of the world. A new adapter is written from its module here and its conformance suite.

Every call has its own time limit and raises `Transient` when the other side does not answer in it, `Permanent` when the
input can never work. Absence is an answer (`None`), never an error. All calls may be repeated.
"""
