package recall_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/loci-memory/loci/recall"
)

func image(url string) recall.Part {
	return recall.Part{Type: recall.Image, Source: []byte(`{"type":"url","url":"` + url + `"}`)}
}

func text(s string) recall.Part { return recall.Part{Type: recall.Text, Text: s} }

// The texts and images of a tool result keep their order. Texts that follow each other become one.
func TestResultsKeepTheOrderOfTextsAndImages(t *testing.T) {
	t.Parallel()
	parts := rapid.SliceOf(rapid.SampledFrom([]recall.Part{text("a"), text("\n b"), text("世\n"), image("x"), image("y")}))
	rapid.Check(t, func(t *rapid.T) {
		var want []recall.Part
		content := parts.Draw(t, "content")
		for _, p := range content {
			if n := len(want); n > 0 && p.Type == recall.Text && want[n-1].Type == recall.Text {
				want[n-1].Text += "\n" + p.Text
				continue
			}
			want = append(want, p)
		}
		r := recall.Part{Type: recall.ToolReturn}
		r.SetReturned(content)
		if diff := cmp.Diff(want, r.Returned()); diff != "" {
			t.Fatalf("text %q, images at %v (-want +got):\n%s", r.Text, r.ImagesAt, diff)
		}
	})
}

// An image stays between the same words when the text around it changes; if these words are cut, it comes last.
func TestImagesStayWhereTheyStoodInATextThatChanges(t *testing.T) {
	t.Parallel()
	masked := func(s string) string { return strings.ReplaceAll(s, "secret", "[x]") }
	cut := func(s string) string { return s[:min(len(s), 10)] }
	for _, c := range []struct {
		name string
		form func(string) string
		want []recall.Part
	}{
		{"words before and after are masked", masked,
			[]recall.Part{image("1"), text("the [x]"), image("2"), text("and the [x]"), image("3")}},
		{"the text is cut before an image", cut, []recall.Part{image("1"), text("the secret"), image("2"), image("3")}},
		{"nothing is left", func(string) string { return "" }, []recall.Part{image("1"), image("2"), image("3")}},
	} {
		r := recall.Part{Type: recall.ToolReturn}
		r.SetReturned([]recall.Part{image("1"), text("the secret"), image("2"), text("and the secret"), image("3")})
		r.ReplaceText(c.form(r.Text), c.form)
		if diff := cmp.Diff(c.want, r.Returned()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Wrong image places, written into a file by another program, never cut a character or drop an image.
func TestPlacesOfImagesThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, places := range [][]int{{1, 99}, {-3, 2}, {5, 2}, {3}} {
		r := recall.Part{Type: recall.ToolReturn, Text: "世界", ImagesAt: places}
		r.Images = append(r.Images, image("1").Source, image("2").Source)
		text, images := "", 0
		for _, p := range r.Returned() {
			if text += p.Text; p.Type == recall.Image {
				images++
			}
		}
		if text != r.Text || images != 2 {
			t.Errorf("images at %v: got the text %q and %d images", places, text, images)
		}
	}
}
