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
        "an UPDATE of a step that stays, without its guard",
        ("tests/store/test_a_row_moves_only_from_what_was_read.py",),
        (
            (
                "WHERE key = :key AND epoch = :expected_epoch AND version = :expected_version",
                "WHERE key = :key AND :expected_epoch >= 0 AND :expected_version >= 0",
            ),
        ),
    ),
    Plant(
        "a step that gives the task to another session is written as one that stays",
        ("tests/store/test_a_row_moves_only_from_what_was_read.py",),
        (("if name not in _STAYING)", 'if name not in (*_STAYING, "session"))'),),
    ),
    Plant(
        "a COMMIT that goes through behind a step that found no row",
        ("tests/store/test_a_row_moves_only_from_what_was_read.py",),
        (('whole = sure.replace(PLACE, sql) if statement.shape == ":sure" else sql', "whole = sql"),),
    ),
    Plant(
        "holds are read before the clock",
        ("tests/engine/test_holds.py",),
        (("    _ = tx.now\n", ""),),
    ),
    Plant(
        "plans that depend on what is bound",
        ("tests/store/test_lists_stay_flat.py",),
        (("        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)\n", ""),),
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
        (("    if not pruned.vouches_for(tx, stored):", "    if pruned.version != stored.task.version:"),),
    ),
    Plant(
        "an effect whose fields changed after they were approved",
        ("tests/engine/test_ledger_edges.py",),
        (("    if not task.decisions and decided(definition, task.state):", "    if False:"),),
    ),
    Plant(
        "an effect begun twice under two names",
        ("tests/engine/test_ledger_edges.py",),
        (('if item.status != "failed" and _twins(item, meant)', "if item.name == meant.name"),),
    ),
    Plant(
        "another task's operation undone",
        ("tests/engine/test_ledger_edges.py",),
        (("if undone is None or undone.task != task.id or undone.status", "if undone is None or undone.status"),),
    ),
    Plant(
        "the first effect undone first",
        ("tests/worker/test_undoing.py", "tests/promises/test_p20_what_was_cancelled_is_told_and_taken_back_once.py"),
        (("for item in reversed(report.undoable):", "for item in report.undoable:"),),
    ),
    Plant(
        "a backlog overtaken by a look that goes on behind it",
        ("tests/engine/test_holds.py",),
        (("if looking.held and head < looking.beyond and _begins_held(tx, lane, definition, looking):", "if head < (0, 0):"),),
    ),
    Plant(
        "a lookup believed while the request may still arrive",
        ("tests/engine/test_operations.py", "tests/edges/test_v1_operations.py"),
        (('said.status != "succeeded" and now < operation.settles_at', 'said.status != "succeeded" and now < operation.deadline'),),
    ),
    Plant(
        "the outcome of a replaced owner, applied",
        ("tests/engine/test_operations.py", "tests/promises/test_p03_a_replaced_owner_writes_nothing.py"),
        (
            (
                "    if (refusal := not_mine(definition, task, claim)) and not answers:",
                "    if (refusal := not_mine(definition, task, claim)) is answers:",
            ),
        ),
    ),
    Plant(
        "a task completed over an operation in doubt",
        ("tests/engine/test_operations.py",),
        (("    unblocked,\n    settled,\n    guarded,\n", "    unblocked,\n    guarded,\n"),),
    ),
    Plant(
        "an operation whose row nobody compares with history",
        ("tests/promises/test_p05_history_is_gapless_and_cannot_be_altered.py",),
        (
            (
                "    return len(entries), _ledger(tx, task, told) or _live(tx, row, task, head)",
                "    return len(entries), _live(tx, row, task, head)",
            ),
        ),
    ),
    Plant(
        "what this very owner began and the remote does not know is done again at once",
        ("tests/worker/test_work.py",),
        (("        if operation.epoch == self.claimed.epoch:\n            rest_s", "        if operation.epoch < 0:\n            rest_s"),),
    ),
    Plant(
        "an effect that a new owner sends without looking",
        ("tests/promises/test_p04_nothing_is_silently_done_twice.py::test_what_is_looked_up_happens_neither_twice_nor_never",),
        (
            (
                '        self._probe("find.before")\n        finding: Finding = yield Call(find, operation)',
                '        self._probe("find.before")\n        finding: Finding = NotFound',
            ),
        ),
    ),
    Plant(
        "an effect whose lease may end before its sender gives up",
        ("tests/worker/test_work.py",),
        (("        if self._keeper.lasts(self.kept, timeout_s):\n", "        if timeout_s:\n"),),
    ),
    Plant(
        "heartbeats that wait until handlers are done with their connections",
        ("tests/worker/test_heartbeats.py",),
        (("self._db = pm.engine.db.aside()", "self._db = pm.engine.db"),),
    ),
    Plant(
        "a step that is remembered under a name that stands for another",
        ("tests/engine/test_operations.py",),
        (
            (
                "isinstance(meant, Refusal) or known is None or known.request_digest == _asked(meant)",
                "isinstance(meant, Refusal) or known is None or known.name == meant.name",
            ),
        ),
    ),
    Plant(
        "a message that is written after its change",
        ("tests/promises/test_p08_messages_are_delivered_in_order_at_least_once.py::test_neither_is_there_without_the_other",),
        (
            ("    _tell(tx, step)\n    return step.tells", "    LATER.append(step)\n    return step.tells"),
            ("Chance = Callable[[int], int]\n", "Chance = Callable[[int], int]\nLATER = []\n"),
            (
                "            done = yield from steps\n",
                "            done = yield from steps\n"
                "            from pointsman.engine.record import LATER, _tell\n"
                "            from pointsman.engine.steps import Write\n"
                "            while LATER:\n"
                "                step = LATER.pop()\n"
                "                yield Write(lambda tx: _tell(tx, step))\n",
            ),
        ),
    ),
    Plant(
        "a message that is added to a lane which is just being closed",
        (
            "tests/promises/test_p08_messages_are_delivered_in_order_at_least_once.py::"
            "test_a_message_that_comes_while_its_lane_is_closed_is_not_left_behind",
        ),
        (("ON CONFLICT (hook, task) DO UPDATE SET claim = message_lanes.claim /*wait*/;", "ON CONFLICT (hook, task) DO NOTHING;"),),
    ),
    Plant(
        "a relay that was replaced and settles all the same",
        (
            "tests/promises/test_p08_messages_are_delivered_in_order_at_least_once.py::"
            "test_whoever_was_replaced_while_it_sent_changes_nothing",
        ),
        (
            (
                "WHERE hook = :hook AND task = :task AND claim = :claim\n/*lock*/;",
                "WHERE hook = :hook AND task = :task AND :claim > 0\n/*lock*/;",
            ),
            ('    tx("drop_message", key=key)\n', '    tx("drop_message", key=_first(tx, lane.hook, lane.task).key)\n'),
        ),
    ),
    Plant(
        "a receiver's name that is resolved again after it was judged",
        ("tests/sinks/test_messages_go_out.py",),
        (("plain = create_connection((address, port)", "plain = create_connection((host, port)"),),
    ),
)
