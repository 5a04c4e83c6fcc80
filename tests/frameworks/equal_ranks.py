"""For frameworks whose ranks are equal and in step: the same weights everywhere, and a killed rank changes nothing."""


class EqualRanks:
    example = ""
    program = ""
    numbers = ()  # the variables that may have a process's number in the gang
    ranks = 2
    launcher_speaks = False  # for all its ranks, as mpirun does

    def all_that_was_said(self, training):
        """What each rank said."""
        if self.launcher_speaks:
            return [training.said("launcher")]
        return [training.said(str(rank)) for rank in range(self.ranks)]

    def assert_trained(self, training):
        said = self.all_that_was_said(training)
        self.assert_loss_fell(said[0], to=0.9)
        self.assert_accuracy(said[0])
        everything = "\n".join(said)
        self.assertEqual(everything.count("the weights add up to"), self.ranks, everything)
        self.assertEqual(everything.count("the weights add up to " + self.weights(everything)), self.ranks, everything)
        return self.weights(everything)

    def test_trains_and_a_killed_rank_changes_nothing(self):
        undisturbed = self.assert_trained(self.run_whole(self.example))

        training = self.start(self.example)
        first = "launcher" if self.launcher_speaks else "0"
        training.wait_for(first, r"step [2-4]00 ")
        training.kill_rank(self.program, "1", *self.numbers)
        self.finish(training, attempts=2)
        self.assert_resumed(training.said(first))
        self.assertEqual(self.assert_trained(training), undisturbed)
