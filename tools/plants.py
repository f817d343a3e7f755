"""The list of planted bugs: each breaks one rule in the way somebody might, and names the tests that must notice."""

from dataclasses import dataclass

Change = tuple[str, str]
"""Text that stands exactly once in src/pointsman, in whatever file, and what takes its place."""

P02 = "tests/promises/test_p02_what_was_acknowledged_survives_kill_9.py"


@dataclass(frozen=True, slots=True)
class Plant:
    name: str
    tests: tuple[str, ...]
    changes: tuple[Change, ...]


PLANTS: tuple[Plant, ...] = (
    Plant(
        "an UPDATE without its version and epoch guard",
        ("tests/store/test_a_row_moves_only_from_what_was_read.py",),
        (
            (
                "WHERE key = :key AND version = :expected_version AND epoch = :expected_epoch",
                "WHERE key = :key AND :expected_version >= 0 AND :expected_epoch >= 0",
            ),
        ),
    ),
    Plant(
        "a COMMIT that goes through behind a step that found no row",
        ("tests/store/test_a_row_moves_only_from_what_was_read.py",),
        (('whole = sure.replace(PLACE, sql) if statement.shape == ":sure" else sql', "whole = sql"),),
    ),
    Plant(
        "synchronous=NORMAL",
        ("tests/store/test_open.py",),
        (('"synchronous": 2', '"synchronous": 1'),),
    ),
    Plant(
        "an answer before COMMIT",
        (f"{P02}::test_kill_9_at_any_other_moment_loses_nothing_acknowledged",),
        (
            ('self._connection.execute("COMMIT")', "self._late = True"),
            (
                '            if self._connection.in_transaction:\n                self._connection.execute("ROLLBACK")',
                '            if self._connection.in_transaction and not self._late:\n                self._connection.execute("ROLLBACK")',
            ),
            (
                "        self._renew()\n        if not",
                '        if self._connection.in_transaction:\n            self._connection.execute("COMMIT")\n'
                "        self._late = False\n        self._renew()\n        if not",
            ),
        ),
    ),
    Plant(
        "a wake-up that comes during the look is forgotten",
        ("tests/promises/test_p22_wake_ups_are_hints.py",),
        (
            (
                "            hint = place.listen()\n            found = yield from look()\n",
                "            found = yield from look()\n            hint = place.listen()\n",
            ),
        ),
    ),
    Plant(
        "who leaves a line tells nobody",
        ("tests/store/test_hints.py",),
        (("            hints = _next([line])\n", "            hints = _next([])\n"),),
    ),
    Plant(
        "an approval that ignores the digest it was shown",
        ("tests/kernel/test_decide.py",),
        (("if proposal.shown is not None and proposal.shown != task.digest:", "if False:"),),
    ),
    Plant(
        "marks around judged text that it can foresee",
        ("tests/kernel/test_opinion.py",),
        (('digest("fence", inputs)', 'digest("fence", list(inputs))'),),
    ),
    Plant(
        "a contributor who may approve",
        ("tests/kernel/test_decide.py",),
        (("return is_contributor and who.name != ANONYMOUS", "return False"),),
    ),
    Plant(
        "a claim that does not ask who holds the task",
        ("tests/kernel/test_decide.py",),
        (("if event.acquires and task.held:", "if False:"),),
    ),
    Plant(
        "an empty queue that is only held by others",
        ("tests/promises/test_p01_of_many_claimers_each_task_has_one.py",),
        (("return Look.LAST if lanes or due else None", "return None"),),
    ),
    Plant(
        "a time that is older than the wait for a row",
        ("tests/store/test_postgres_transactions.py",),
        (("            self._now, self._time = None, []\n", ""),),
    ),
    Plant(
        "what was read ahead is believed after a wait",
        ("tests/store/test_postgres_journeys.py",),
        (("            self._read.clear()\n", ""),),
    ),
    Plant(
        "a limit that forgets what was used",
        ("tests/engine/test_limits.py",),
        (("used.amount + wanted > limit.most * UNIT", "wanted > limit.most * UNIT"),),
    ),
    Plant(
        "evidence written, state not",
        ("tests/promises/test_p10_p11_draft_evidence_and_state_move_together.py",),
        (
            (
                "**entered(definition, task, state, case.now),\n        version",
                "**entered(definition, task, task.state, case.now),\n        version",
            ),
        ),
    ),
    Plant(
        "a dry run that commits",
        ("tests/promises/test_p10_p11_draft_evidence_and_state_move_together.py",),
        (
            (
                "return _accepted((yield Read(partial(units.dry_run, deciding, wanted, proposal))))",
                "return _accepted((yield from self._proposed(deciding, wanted, proposal, None)))",
            ),
        ),
    ),
    Plant(
        "the history entry in a second transaction",
        (f"{P02}::test_kill_9_at_any_other_moment_loses_nothing_acknowledged",),
        (
            (
                "    history.append(tx, key, step.entry)\n",
                "    LATER.append((key, step.entry))\n",
            ),
            ("Chance = Callable[[int], int]\n", "Chance = Callable[[int], int]\nLATER = []\n"),
            (
                "            done = yield from steps\n",
                "            done = yield from steps\n"
                "            from pointsman.engine.record import LATER\n"
                "            from pointsman.engine.steps import Write\n"
                "            from pointsman.store import history\n"
                "            while LATER:\n"
                "                entry = LATER.pop()\n"
                "                yield Write(lambda tx: history.append(tx, *entry))\n",
            ),
        ),
    ),
    Plant(
        "an idempotency key that answers another request",
        ("tests/promises/test_p09_same_key_same_answer_one_change.py",),
        (("if digest != self.call.request.digest:", "if False:"),),
    ),
    Plant(
        "an entry hash that leaves out a column",
        ("tests/promises/test_p05_history_is_gapless_and_cannot_be_altered.py",),
        (('return digest("entry", link)', 'return digest("entry", link._replace(session=None))'),),
    ),
    Plant(
        "a verdict applied to content it did not judge",
        ("tests/kernel/test_decide.py",),
        (
            (
                "        if key in judged:\n            evidence[name] = change.evidence_of(judged[key]",
                "        if judged:\n            evidence[name] = change.evidence_of(next(iter(judged.values()))",
            ),
        ),
    ),
    Plant(
        "an old epoch is let pass",
        ("tests/promises/test_p03_a_replaced_owner_writes_nothing.py",),
        (("claim.epoch is not None and claim.epoch != task.epoch", "claim.epoch is not None and claim.epoch > task.epoch"),),
    ),
    Plant(
        "a keeper that waits for a silent store past the end of its lease",
        ("tests/worker/test_keeper.py",),
        (("return self.capped if self.owed_since is None else now - self.owed_since >= self.part_s", "return self.capped"),),
    ),
    Plant(
        "a copy that is open before it was verified",
        ("tests/promises/test_p05_a_copy_arrives_whole.py::test_a_copy_that_was_killed_says_so_and_is_refused_until_copied_anew",),
        (
            ('    told("verifying", 0)\n', '    writing.finish()\n    told("verifying", 0)\n'),
            ("    if report.ok:\n        writing.finish()\n", ""),
        ),
    ),
    Plant(
        "a pruned task whose live row nobody vouches for",
        ("tests/promises/test_p05_history_is_gapless_and_cannot_be_altered.py",),
        (("    if not pruned.vouches_for(stored):", "    if pruned.version != stored.task.version:"),),
    ),
)
