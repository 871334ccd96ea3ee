"""A logger that a thread makes while pytest walks over all of them (tests/conftest.py)."""

import logging


def test_a_logger_may_be_made_while_pytest_walks_over_them():
    loggers = logging.Logger.manager.loggerDict
    for number, _ in enumerate(loggers.values()):
        logging.getLogger(f"made while walking {number}")
    for name in [each for each in loggers if each.startswith("made while walking")]:
        del loggers[name]
