"""Counts primes, and can be paused, resumed and stopped between any two numbers."""

import itertools
import json
import os
import select
import sys


class Stopped(Exception):
    """The supervisor wants the task to end."""


class Task:
    """A task's side of the task protocol, version 1. Needs nothing but Python."""

    def __init__(self):
        self.down = int(os.environ["CHONGMING_TASK_IN"])
        self.up = int(os.environ["CHONGMING_TASK_OUT"])
        self.heard = b""
        self.start = self.next_message()  # always the first line
        self.args = self.start["args"]
        self.say(type="hello", protocol=1, handles=["stop", "pause"])

    def say(self, **message):
        line = json.dumps(message, allow_nan=False).encode() + b"\n"
        while line:
            line = line[os.write(self.up, line):]

    def next_message(self, wait=True):
        while b"\n" not in self.heard:
            if not wait and not select.select([self.down], [], [], 0)[0]:
                return None
            piece = os.read(self.down, 65536)
            if not piece:
                sys.exit("the supervisor is gone")
            self.heard += piece
        line, self.heard = self.heard.split(b"\n", 1)
        return json.loads(line)

    def checkpoint(self):
        """A sign of life, and the place where a pause is taken and a stop raised."""
        self.say(type="checkpoint")
        message = self.next_message(wait=False)
        while message:
            if message["type"] == "stop":
                raise Stopped(message["reason"])
            if message["type"] == "pause":
                self.say(type="paused", epoch=message["epoch"])
                message = self.next_message()  # suspended until it is told more
            else:
                message = self.next_message(wait=False)

    def progress(self, done, total=None, unit=None, message=None):
        self.say(type="progress", done=done, total=total, unit=unit, message=message)

    def log(self, message, level="info"):
        self.say(type="log", level=level, message=message)

    def result(self, value):
        self.say(type="result", value=value)

    def failure(self, message, retryable=True):
        self.say(type="failure", message=message, retryable=retryable)


def main():
    task = Task()
    try:
        limit = int(task.args["limit"])
    except ValueError:
        task.failure(f"limit is no number: {task.args['limit']!r}", retryable=False)
        return
    primes = []
    number = 2
    try:
        while number < limit:
            candidates = itertools.takewhile(lambda prime: prime * prime <= number, primes)
            if all(number % prime for prime in candidates):
                primes.append(number)
            number += 1
            if number % 1000 == 0:
                task.checkpoint()
                task.progress(number, total=limit, unit="numbers")
    except Stopped as stopped:
        task.log(f"stopped at {number}: {stopped}", level="warn")
        sys.exit(1)
    task.result({"primes": len(primes), "largest": primes[-1] if primes else None})


main()
