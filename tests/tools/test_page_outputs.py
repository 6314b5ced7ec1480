"""Pages show what their blocks really print."""

from tools.page_outputs import renew_outputs

PAGE = """A page.

```python
word = "fine"
print(f"a {word}")
print("  film")
```

```text
old
```

```python
print("not shown")
open("a-file.txt", "w").close()
```

```console
$ ls
old
$ echo two
```

```text
not an output
```
"""


def test_the_outputs_of_a_page_are_renewed_in_order(tmp_path):
    page = renew_outputs(PAGE, tmp_path)
    assert page == PAGE.replace("```text\nold", "```text\na fine\n  film").replace(
        "$ ls\nold\n$ echo two\n```\n\n```text\nnot an output\n```\n", "$ ls\na-file.txt\n\n$ echo two\ntwo\n```\n"
    )
    assert renew_outputs(page, tmp_path) == page
