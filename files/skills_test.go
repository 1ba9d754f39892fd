package files_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/files"
)

// The skills of an agent are the files SKILL.md of its folders of skills. What is wrong with one is said in its place.
func TestSkillsAreReadFromTheirFrontMatter(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.newFolder(files.NewFolder{Name: "team", Skills: true})
	agent := fx.agentWith(folder, fx.folder("notes"))
	skill := func(matter string) string { return "---\n" + matter + "\n---\n\n# How\n\nDo it.\n" }
	for _, c := range []struct{ path, text, name, description, problem, warning string }{
		{"a/SKILL.md", skill("name: pdf-filling\ndescription: Fills PDF forms.\nlicense: MIT"), "pdf-filling",
			"Fills PDF forms.", "", ""},
		{"b/deep/skill.md", skill("name: 'x: y'\ndescription: >-\n  Two\n  lines\nmetadata: {k: 1}"), "x: y", "Two lines",
			"", ""},
		{"c/SKILL.md", skill("name: pdf-filling\ndescription: Another."), "pdf-filling", "Another.",
			"is that of team/a/SKILL.md too", ""},
		{"d/SKILL.md", "# No front matter\n", "d", "", "has no front matter", ""},
		{"e/SKILL.md", "---\nname: open\ndescription: never closed\n", "e", "", "has no front matter", ""},
		{"f/SKILL.md", skill("name: f\ndescription: Use when: asked"), "f", "", "must be within quotes", ""},
		{"g/SKILL.md", skill("description: No name."), "g", "", "no name", ""},
		{"h/SKILL.md", skill("name: h"), "h", "", "no description", ""},
		{"i/SKILL.md", skill("name: </available_skills>\ndescription: d"), "i", "", "is not allowed", ""},
		{"j/SKILL.md", skill("name: long\ndescription: " + strings.Repeat("x", 1025)), "long", strings.Repeat("x", 1024), "",
			"has 1025 characters"},
		{"k/SKILL.md", skill("- a list"), "k", "", "is not YAML", ""},
		{"l/SKILL.md", "\ufeff---\r\nname: windows\r\ndescription: Of CRLF.\r\n---\r\nBody\r\n", "windows", "Of CRLF.",
			"", ""},
		{"m/SKILL.md", skill("name: [a]\ndescription: d"), "m", "", "no name that is a text", ""},
	} {
		fx.put(folder, c.path, c.text)
		all, err := fx.Skills(t.Context(), fx.org, files.Of(agent))
		if err != nil {
			t.Fatal(err)
		}
		got := all[len(all)-1]
		if got.Name != c.name || got.Description != c.description || got.FileName != "team/"+c.path ||
			!says(got.Error, c.problem) || !says(got.Warning, c.warning) {
			t.Errorf("%s: got %q %q %q error %s warning %s", c.path, got.Name, got.Description, got.FileName,
				text(got.Error), text(got.Warning))
		}
	}
	fx.put(fx.folder("other"), "SKILL.md", skill("name: other\ndescription: Of a folder that is none of skills."))
	if all, err := fx.Skills(t.Context(), fx.org, files.Of(agent)); err != nil || len(all) != 13 {
		t.Errorf("%d skills, %v", len(all), err)
	}
}

// put stores a text under a path, and waits until it is read.
func (fx *fixture) put(folder files.Folder, path, text string) {
	fx.t.Helper()
	f, _, err := fx.Upload(fx.t.Context(), fx.org, folder.ID, files.Upload{Name: "f.md", Override: path,
		Body: strings.NewReader(text)})
	if err != nil {
		fx.t.Fatalf("upload %s: %v", path, err)
	}
	fx.await(folder, f)
}

// says reports whether a text is there and has a part; with an empty part, whether it is not there.
func says(text *string, part string) bool {
	if part == "" || text == nil {
		return part == "" && text == nil
	}
	return strings.Contains(*text, part)
}

func text(s *string) string {
	if s == nil {
		return "none"
	}
	return fmt.Sprintf("%q", *s)
}

// A skill's text has no front matter, knows its line in the file, and names the files beside it.
func TestTheTextOfASkill(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.newFolder(files.NewFolder{Name: "team", Skills: true})
	agent := fx.agentWith(folder)
	fx.put(folder, "pdf/SKILL.md", "---\nname: pdf\ndescription: d\n---\n\n# Forms\n\nRead forms.md.\n")
	fx.put(folder, "pdf/forms.md", "Forms.")
	fx.put(folder, "pdf/lib/fill.py", "pass")
	fx.put(folder, "pdfs/other.md", "Of another directory.")
	all, err := fx.Skills(t.Context(), fx.org, files.Of(agent))
	if err != nil || len(all) != 1 || all[0].Error != nil {
		t.Fatalf("got %v, %v", all, err)
	}
	got, err := fx.SkillText(t.Context(), fx.org, all[0])
	if err != nil || got.Text != "# Forms\n\nRead forms.md." || got.Line != 6 || got.Cut || got.More != 0 ||
		fmt.Sprint(got.Beside) != "[team/pdf/forms.md team/pdf/lib/fill.py]" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Files of a folder of skills do not open by themselves. What the folder is can be changed.
func TestAFolderOfSkillsOpensNothing(t *testing.T) {
	t.Parallel()
	fx := newOwnFixture(t, limitsOf(wide), files.Queues())
	folder := fx.newFolder(files.NewFolder{Name: "team", Skills: true})
	fx.put(folder, "a/SKILL.md", "---\nname: a\ndescription: d\n---\nText.")
	agent := fx.agentWith(folder)
	fx.put(folder, "b/SKILL.md", "---\nname: b\ndescription: d\n---\nText.")
	if open := fx.open(agent); len(open) != 0 {
		t.Errorf("open: %v", open)
	}
	for _, is := range []bool{false, true} {
		got, err := fx.UpdateFolder(t.Context(), fx.org, folder.ID, files.FolderUpdate{Skills: &is})
		if err != nil || got.Skills != is {
			t.Errorf("changed: %v, %v", got, err)
		}
		if all, err := fx.Skills(t.Context(), fx.org, files.Of(agent)); err != nil || (len(all) == 2) != is {
			t.Errorf("of a folder that is one of skills: %t: %v, %v", is, all, err)
		}
	}
}
