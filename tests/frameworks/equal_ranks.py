"""For frameworks whose ranks are equal and in step: the same weights everywhere, and a killed rank changes nothing."""


class EqualRanks:
    example = ""
    program = ""
    numbers = ()  # the variables that may have a process's number in the gang
    ranks = 2
    launcher_collects_output = False  # for all its ranks, as mpirun does

    def all_output(self, training):
        """By all ranks. Which of the processes is rank 0 is torchrun's choice, and may change."""
        names = ["launcher"] if self.launcher_collects_output else map(str, range(self.ranks))
        return "\n".join(map(training.output, names))

    def assert_trained(self, training):
        output = self.all_output(training)
        self.assert_loss_fell(output, to=0.9)
        self.assert_accuracy(output)
        self.assertEqual(output.count("the weights add up to"), self.ranks, output)
        self.assertEqual(output.count("the weights add up to " + self.weights(output)), self.ranks, output)
        return self.weights(output)

    def test_trains_and_a_killed_rank_changes_nothing(self):
        undisturbed = self.assert_trained(self.run_whole(self.example))

        training = self.start(self.example)
        training.wait_for("launcher" if self.launcher_collects_output else "0", r"step [2-4]00 ")
        training.kill_rank(self.program, "1", *self.numbers)
        self.finish(training, attempts=2)
        self.assert_resumed(self.all_output(training))
        self.assertEqual(self.assert_trained(training), undisturbed)
