"""The form of `make gpu-test`: one line a step, the end of a failed step's log below it, and 'N passed, N failed' as the last line.
Takes the place of pytest's own report.
"""


def take_over(config):
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(StepReport(config), "step-report")


def reason(report):
    """The message of a failure or a skip, in one line."""
    if isinstance(report.longrepr, tuple):  # (path, line, "Skipped: why")
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    return (text.strip().splitlines() or ["no message"])[0].removeprefix("Failed: ")


def show(line):
    print(line, flush=True)


class StepReport:
    def __init__(self, config):
        self.config = config
        self.count = {"ok": 0, "skip": 0, "FAIL": 0}
        self.seconds, self.verdict, self.why = 0.0, "ok", ""
        self.capture = config.pluginmanager.getplugin("capturemanager")

    def print(self, line):
        with self.capture.global_and_fixture_disabled():
            show(line)

    def fail(self, message, detail=""):
        """A failure outside of the steps, such as a test file that cannot be imported."""
        self.count["FAIL"] += 1
        self.print(f"FAIL  {message}")
        for line in detail.splitlines():
            self.print(f"         | {line}")

    def pytest_collectreport(self, report):
        if report.failed:
            self.fail(report.nodeid, str(report.longrepr))

    def pytest_internalerror(self, excrepr):
        self.fail("an error of pytest", str(excrepr))

    def pytest_keyboard_interrupt(self):
        self.fail("interrupted")

    def pytest_runtest_logreport(self, report):
        """A step's report comes in three phases; its line is printed after the last one."""
        if report.when == "setup":
            self.seconds, self.verdict, self.why = 0.0, "ok", ""
        self.seconds += report.duration
        if not report.passed and self.verdict != "FAIL":
            self.verdict, self.why = ("skip" if report.skipped else "FAIL"), reason(report)
        if report.when != "teardown":
            return
        step = self.config.gpu_steps[report.nodeid]
        self.count[self.verdict] += 1
        for note in step.notes:
            self.print(f"       {note}")
        self.print(f"{self.verdict:4} {self.seconds:6.1f} s  {step.name}{': ' if self.why else ''}{self.why}")
        if self.verdict == "FAIL":
            for line in step.tail():
                self.print(f"         | {line}")

    def pytest_sessionfinish(self, session):
        if self.config.getoption("list"):
            return
        if self.config.gpu_count == 0:
            self.print("gpu-test: there is no GPU that CUDA can use (rondo info says why)")
            self.count = {"ok": 0, "skip": 0, "FAIL": 1}
        if self.count["skip"]:
            self.print(f"{self.count['skip']} skipped")
        self.print(f"{self.count['ok']} passed, {self.count['FAIL']} failed")
        session.exitstatus = 0 if self.count["FAIL"] == 0 and self.count["ok"] > 0 else 1
