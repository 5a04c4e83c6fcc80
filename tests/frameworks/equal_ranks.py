"""For frameworks whose ranks are equal and in step: the same weights everywhere, and a killed rank changes nothing."""


class EqualRanks:
    example = ""
    program = ""
    numbers = ()  # the variables that may have a process's number in the gang
    ranks = 2
    launcher_speaks = False  # for all its ranks, as mpirun does

    def everything_said(self, training):
        """By all ranks. Which of the processes is rank 0 is torchrun's choice, and may change."""
        names = ["launcher"] if self.launcher_speaks else map(str, range(self.ranks))
        return "\n".join(map(training.said, names))

    def assert_trained(self, training):
        said = self.everything_said(training)
        self.assert_loss_fell(said, to=0.9)
        self.assert_accuracy(said)
        self.assertEqual(said.count("the weights add up to"), self.ranks, said)
        self.assertEqual(said.count("the weights add up to " + self.weights(said)), self.ranks, said)
        return self.weights(said)

    def test_trains_and_a_killed_rank_changes_nothing(self):
        undisturbed = self.assert_trained(self.run_whole(self.example))

        training = self.start(self.example)
        training.wait_for("launcher" if self.launcher_speaks else "0", r"step [2-4]00 ")
        training.kill_rank(self.program, "1", *self.numbers)
        self.finish(training, attempts=2)
        self.assert_resumed(self.everything_said(training))
        self.assertEqual(self.assert_trained(training), undisturbed)
