"""The group `heedful features`."""


def test_the_group_lists_its_commands(heedful_command):
    code, out, _ = heedful_command("features", "--help")
    assert code == 0
    assert "measure" in out
    assert heedful_command("features")[0] == 2


def test_a_command_that_does_not_exist_is_a_sentence(heedful_command):
    code, _, err = heedful_command("features", "mesure")
    assert (code, err.count("\n")) == (2, 1)
    assert "No such command 'mesure'" in err
