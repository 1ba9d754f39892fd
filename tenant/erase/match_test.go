package erase

import (
	"encoding/base64"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestOccurrencesInAnySpellingAreFound(t *testing.T) {
	t.Parallel()
	for _, w := range []struct{ texts, in, want string }{
		{"Ann Lee", "I met ann   LEE today", "I met [erased] today"},
		{"Ann Lee|A. Lee", "Ann Lee, A. Lee, A Lee", "[…], […], A Lee"},
		{"José", "jose\u0301 and JOSÉ, not Josef", "[…] and […], not Josef"},
		{"Jose", "José", "[…]"},
		{"straße", "STRASSE", "[…]"},
		{"ﬁle name", "file name", "[erased]"},
		{"pass.word*", "password and passXword and pass.word*", "password and passXword and [erased]"},
		{`C:\dir "x"`, `{"a":"C:\\dir \"x\""}`, `{"a":"[erased]"}`},
		{`C:\dir "x"`, `{\"a\":\"C:\\\\dir \\\"x\\\"\"}`, `{\"a\":\"[erased]\"}`},
		{"smile 😀", `smile \ud83d\ude00!`, `[erased]!`},
		{"top secret", "top\n  2: secret", "[erased]"},
		{"top secret", "top⏎\nsecret", "[erased]"},
		{"top <secret>", "top <~secret>", "[erased]"},
		{"to\u00adken 9", "t\u200boken 9", "[erased]"},
		{"abcabc", "abcabcabc", "[…]abc"},
		{"١٢٣٤", "١٢٣٤", "[…]"},
		{"Zoë & Co", "https://x.org/?q=Zo%C3%AB+%26+Co&y=Zoe%CC%88%20%26%20co", "https://x.org/?q=[erased]&y=[erased]"},
		{"Ann Lee", "q=ann+lee", "q=[…]"},
		{`Zoë "Q"`, "<b>Zo&euml; &quot;Q&#34;</b> &amp; Zo&#xEB;", "<b>[erased]</b> &amp; Zo&#xEB;"},
		{"Zoë Quartz 77", "x " + base64.StdEncoding.EncodeToString([]byte("Zoë Quartz 77")), "x [erased]c="},
		{"Zoë Quartz 77", base64.URLEncoding.EncodeToString([]byte(`{"a":"Zoë Quartz 77"}`)), "eyJhIjoi[erased]cifQ=="},
		{"Ann Lee", "Ann <b>Lee</b> and <i>Ann</i><br/>Lee", "[erased]</b> and <i>[erased]"},
		{"Ann Lee", "Ann</w:t></w:r><w:r w:a=\"1\"><w:t> Lee", "[erased]"},
		{"Ann Lee", "Ann **Lee** and _Ann_ Lee and `Ann` `Lee`, ann_lee", "[erased]** and _[erased] and `[erased]`, ann_lee"},
		{"Ann Lee", "[Ann](https://x.org/a_(b)) Lee, Ann [Lee][1], [Ann][x] [Lee](y)",
			"[[erased], [erased]][1], [[erased]](y)"},
		{"Ann Lee", "a[0] Ann (x) Lee [Ann] Lee", "a[0] Ann (x) Lee [Ann] Lee"},
		{"ab cd", "ab < cd > ef, ab <ab@x.org> cd", "ab < cd > ef, ab <ab@x.org> cd"},
	} {
		m, err := newMatcher(strings.Split(w.texts, "|"), false)
		if err != nil {
			t.Fatalf("%q: %v", w.texts, err)
		}
		if got, n := m.erase(w.in); got != w.want || (n == 0) != (w.in == w.want) {
			t.Errorf("erase %q from %q: got %q (%d), want %q", w.texts, w.in, got, n, w.want)
		}
	}
}

// Occurrences near the end of a window are found once, and a part of a word is not found.
func TestLongTextsAreSearchedInWindows(t *testing.T) {
	t.Parallel()
	m, err := newMatcher([]string{`Zoë "Q"`}, true)
	if err != nil {
		t.Fatal(err)
	}
	m.window = 8 << 10
	filling := strings.Repeat("é no use. ", 1<<10)
	for form, shifts := range map[string]int{`Zoë "Q"`: 24, `Zo\u00eb \"Q\"`: 5, "Zo&euml; &quot;Q&quot;": 5} {
		for shift := range shifts {
			windows := 2 // after the window with the occurrences
			if shift == 0 {
				windows = 9
			}
			text := filling[:m.window-100-shift] + " " + strings.Repeat(form+" x"+form+" ", 8) +
				strings.Repeat(filling, windows)
			if got, n := m.erase(text); n != 8 || strings.Count(got, form) != 8 {
				t.Errorf("%s, shift %d: found %d times, and %d are left; want 8 and 8", form, shift, n, strings.Count(got, form))
			}
		}
	}
}

// A text with combining marks out of order takes memory in proportion to its length.
func TestTextsWithMarksInAnyOrderTakeLittleMemory(t *testing.T) {
	m, err := newMatcher([]string{"Ann Lee"}, false)
	if err != nil {
		t.Fatal(err)
	}
	taken := func(repeats int) uint64 {
		text := "a\u0301\u0323" + strings.Repeat("no use. ", repeats) + "Ann Lee"
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if n := len(m.find(text)); n != 1 {
			t.Fatalf("found %d times", n)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if small, large := taken(1_000), taken(8_000); large > 20*small {
		t.Errorf("8 times the text takes %d bytes in place of %d", large, small)
	}
}

func TestPiecesAreOneText(t *testing.T) {
	t.Parallel()
	m, err := newMatcher([]string{"Zoë Quartz"}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct{ pieces, want string }{
		{"I am Zo|ë Qu|artz, yes", "I am [erased]||, yes"},
		{"Zoë| Quartz", "[erased]|"},
		{"a|Zoë Quartz|b", "a|Zoë Quartz|b"}, // the occurrence is within one piece, where it is erased separately
		{"Zoë |QuartzZoë| Quartz", "[erased]|[erased]|"},
		{"Zoë |Quark", "Zoë |Quark"},
	} {
		got, n := m.eraseAcross(strings.Split(w.pieces, "|"), "")
		if g := strings.Join(got, "|"); g != w.want || (n > 0) != (w.pieces != w.want) {
			t.Errorf("%q: got %q (%d), want %q", w.pieces, g, n, w.want)
		}
	}
}

func TestWholeWords(t *testing.T) {
	t.Parallel()
	m, err := newMatcher([]string{"Ann"}, true)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := m.erase("Ann's annex; Joann, ANN"); got != "[…]'s annex; Joann, […]" {
		t.Errorf("got %q", got)
	}
}

func TestTextsThatCannotBeErasedAreRefused(t *testing.T) {
	t.Parallel()
	for _, texts := range [][]string{nil, {""}, {"a"}, {"ab"}, {" a b "}, {"\u200b\u200b\u200b"}, {"erased"},
		{strings.Repeat("a", MaxChars+1)}} {
		if _, err := newMatcher(texts, false); err == nil {
			t.Errorf("%.40q is accepted", texts)
		}
	}
}

// After an erasure, the matcher finds nothing.
func FuzzErase(f *testing.F) {
	f.Add("secret", "a secret, SEC\\u0072et")
	f.Add("é \"x\"", "e\u0301 \\\"x\\\"")
	f.Fuzz(func(t *testing.T, text, searched string) {
		m, err := newMatcher([]string{text}, false)
		if err != nil {
			return
		}
		after, n := m.erase(searched)
		if (n == 0) != (after == searched) && !strings.Contains(searched, mark) && !strings.Contains(searched, shortMark) {
			t.Errorf("%d found, %q becomes %q", n, searched, after)
		}
		if strings.Contains(after, text) && strings.TrimSpace(text) == text {
			t.Errorf("%q is left in %q, of %q", text, after, searched)
		}
	})
}

// Comparing letters first, as mayBeIn does, hides no occurrence.
func TestTheFirstLookHidesNothing(t *testing.T) {
	t.Parallel()
	pieces := []string{"Ann", "ann", " ", "\n", "Lee", "LEE", "é", "e\u0301", "<b>", "</b>", "**", "_", "`", "[", "](x)",
		"\\n", "\\u0041", "%41", "%20", "&quot;", "&#65;", "+", "~", "⏎", "12: ", "ß", "ﬁ", "\u200b", "\u302e",
		"\U0001d165", "Ａ", ".", "QW5uIExlZQ", "漢", "\\\\"}
	rapid.Check(t, func(t *rapid.T) {
		word := "Ann" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 4).Draw(t, "word"), "")
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(append(pieces, word)), 0, 12).Draw(t, "text"), "")
		m := &matcher{}
		m.add(word)
		got := m.find(text)
		m.letters = [][]byte{{}} // letters that every text has
		if want := m.find(text); !slices.Equal(got, want) {
			t.Fatalf("%q in %q: found %v, want %v", word, text, got, want)
		}
	})
}

// BenchmarkFind searches JSON with markup, escapes and line numbers for a word that it does not have.
func BenchmarkFind(b *testing.B) {
	m, err := newMatcher([]string{"Adelheid"}, false)
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat(`[{"type":"text","text":"I saw **the file**:\n  12: func main() {\n  13: \tf(\"a < b\")\n}\n`+
		`See [docs](https://example.com/a%20b) & more_words."},{"type":"tool_call","input":"{\"text\":\"x\\n\\ty\"}"}]`, 100)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		m.in(text)
	}
}
