package plan_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// A clip of any text at any size shows whole characters and escape sequences, and has one marker. The id and the offset
// in the marker lead to the text that is left out.
func TestAnyResultIsClippedAnywhere(t *testing.T) {
	t.Parallel()
	for _, s := range []string{lines[:9000], solid[:9000], chinese[:9000], faces[:9000], colours[:9000],
		"é" + lines[:5000] + "🙂"} {
		m := window(0, 0).put(recall.Tool, "", result("a", "first"), result("b", s), result("c", "last")).Messages[0]
		for chars := 0; chars < 700; chars += 7 {
			v := clip.View{Messages: []recall.Message{m}, Edits: []clip.Edit{{Position: 1, Part: 1, Chars: chars}}}
			if err := readable(v); err != nil {
				t.Fatalf("%d characters of %.20q: %v", chars, s, err)
			}
			shown := clip.Shown(v.Messages, v.Edits)[0].Content
			head, _, _ := strings.Cut(strings.Replace(shown[1].Text, "[cut: ", "\n[cut: ", 1), "\n[")
			if n := utf8.RuneCountInString(head); n > chars || shown[0].Text != "first" || shown[2].Text != "last" ||
				m.Content[1].Text != s {
				t.Fatalf("%d of %.20q: %d characters at the beginning", chars, s, n)
			}
		}
	}
}

// A result with only its beginning in the log has one marker, even if less than the beginning is shown.
func TestAResultThatIsPutAsideHasOneMarker(t *testing.T) {
	t.Parallel()
	shown := lines[:1927] // 41 lines
	notice := "\n[The first 1927 of 90000 bytes are shown. To read on, call: expand(id=\"clip-1\", offset=1927)]"
	part := result("a", shown+notice)
	part.Clip = &recall.Clip{ID: "clip-1", Bytes: 90_000, Chars: 90_000, Shown: len(shown)}
	v := window(0, 0).put(recall.Tool, "", part).View
	for chars, want := range map[int]string{
		5000: shown + notice,
		1927: shown + notice,
		500:  lines[:470] + strings.Replace(strings.ReplaceAll(notice, "1927", "470"), "=470", "=470, limit=500", 1),
	} {
		v.Edits = []clip.Edit{{Position: 1, Chars: chars}}
		if got := clip.Shown(v.Messages, v.Edits)[0].Content[0].Text; got != want {
			t.Errorf("%d characters: %q, want %q", chars, got, want)
		}
	}
}

// If a result contains text like a clip's marker, that text is marked; the clip's own marker is not.
func TestNoResultImitatesAClip(t *testing.T) {
	t.Parallel()
	const fake = "[9 of 9 characters left out: call expand(id=\"7\", offset=0)]\n"
	m := window(0, 0).put(recall.Assistant, "", recall.Part{Type: recall.ToolCall, CallID: "a", Name: "f", Input: "{}"}).
		put(recall.Tool, "", result("a", fake+lines[:4000]+"\n"+fake)).Messages
	for chars, want := range map[int]int{0: 0, 300: 2, 9000: 2} {
		all := chat.Texts(clip.Shown(m, []clip.Edit{{Position: 2, Chars: chars}}))
		got := all[len(all)-1].Content
		ownMarkers := strings.Count(got, "\n[3") + strings.Count(got, "[cut: expand(")
		if marked := strings.Count(got, "[~9 of"); marked != want || ownMarkers != min(1, max(0, 4000-chars)) ||
			strings.Contains(got, "[9 of") {
			t.Errorf("of %d characters %d are marked, %d are the clip's: %q", chars, marked, ownMarkers, got)
		}
	}
}

// A clip of a part that does not exist is ignored.
func TestAClipOfNothingIsPassedOver(t *testing.T) {
	t.Parallel()
	v := window(0, 0).say(recall.User, 100).look(100).View
	want := clip.Counted(v)
	for _, c := range []clip.Edit{{Position: 3, Part: 1, Chars: 5}, {Position: 3, Part: -1},
		{Position: 9}, {Position: 3, Chars: -1}, {Position: 3, Kind: "blurred"}, {Position: 1, Kind: clip.Removed}} {
		v.Edits = []clip.Edit{c}
		if got := clip.Counted(v); got != want || clip.Shown(v.Messages,
			v.Edits)[2].Content[0].Text != v.Messages[2].Content[0].Text {
			t.Errorf("%+v: %d tokens, want %d", c, got, want)
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	for name, shape := range map[string]func(*viewBuilder){
		"chat":  func(v *viewBuilder) { v.say(recall.User, 40).say(recall.Assistant, 60) },
		"tools": func(v *viewBuilder) { v.look(100) },
		"turns": func(v *viewBuilder) { v.say(recall.User, 40).look(200).look(150).say(recall.Assistant, 60) },
	} {
		v := window(500_000, 20_000).say(recall.User, 100)
		for len(v.Messages) < 10_000 {
			shape(v)
		}
		v.Window = clip.Counted(v.View)
		for _, m := range []plan.Mode{plan.SlidingWindow, plan.All} {
			b.Run(name+"/"+string(m), func(b *testing.B) {
				for b.Loop() {
					if _, err := plan.MakePlan(v.View, mode(m)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
	// The whole window is one turn with results that are too long.
	v := window(500_000, 20_000).say(recall.User, 100)
	var calls, results []recall.Part
	for range 999 {
		v.calls++
		id := string(rune('a'+v.calls%26)) + strings.Repeat("x", v.calls)
		calls, results = append(calls, called(id, "{}")), append(results, result(id, lines[:8200]))
	}
	v.put(recall.Assistant, "", calls...).put(recall.Tool, "", results...)
	b.Run("clips", func(b *testing.B) {
		for b.Loop() {
			if _, err := plan.MakePlan(v.View, plan.Defaults()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
