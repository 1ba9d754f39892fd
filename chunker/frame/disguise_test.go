package frame_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
)

// each returns a function that replaces every character of a text.
func each(replace func(r rune) string) func(string) string {
	return func(text string) string {
		var b strings.Builder
		for _, r := range text {
			b.WriteString(replace(r))
		}
		return b.String()
	}
}

// shifted returns a function that moves the ASCII characters from–to to the block of Unicode that begins at the given
// character.
func shifted(from, to, first rune) func(string) string {
	return each(func(r rune) string {
		if r >= from && r <= to {
			return string(r - from + first)
		}
		return string(r)
	})
}

// behindLetters returns a function that puts a sign behind each letter.
func behindLetters(sign string) func(string) string {
	return each(func(r rune) string {
		if unicode.IsLetter(r) {
			return string(r) + sign
		}
		return string(r)
	})
}

// disguises are ways to spell a text that a model still reads.
var disguises = map[string]func(string) string{
	"full width":          shifted('!', '}', '！'),
	"bold":                shifted('a', 'z', '𝐚'),
	"bold capitals":       shifted('A', 'Z', '𝐀'),
	"monospaced digits":   shifted('0', '9', '𝟶'),
	"circled letters":     shifted('a', 'z', 'ⓐ'),
	"squared letters":     func(s string) string { return shifted('A', 'Z', '🄰')(strings.ToUpper(s)) },
	"Arabic-Indic digits": shifted('0', '9', '٠'),
	"Persian digits":      shifted('0', '9', '۰'),
	"Devanagari digits":   shifted('0', '9', '०'),
	"superscript digits":  strings.NewReplacer("1", "¹", "2", "²").Replace,
	"Chinese numerals":    strings.NewReplacer("12", "十二").Replace,
	"capitals":            strings.ToUpper,
	"small letters":       strings.ToLower,
	"Cyrillic":            strings.NewReplacer("a", "а", "e", "е", "o", "о", "c", "с", "i", "і", "s", "ѕ").Replace,
	"Greek":               strings.NewReplacer("o", "ο", "v", "ν", "i", "ι", "T", "Τ").Replace,
	"Cherokee":            strings.NewReplacer("w", "Ꮃ", "i", "Ꭵ", "d", "Ꮷ", "e", "ꬲ", "S", "Ꮪ", "h", "Ꮒ").Replace,
	"Lisu": func(s string) string {
		return strings.NewReplacer("E", "ꓰ", "T", "ꓔ").Replace(strings.ToUpper(s))
	},
	"Armenian":                strings.NewReplacer("o", "օ", "u", "ս", "h", "հ", "n", "ո").Replace,
	"ones for letters":        strings.NewReplacer("i", "1", "l", "1", "o", "0").Replace,
	"accents":                 strings.NewReplacer("e", "é", "i", "ï", "o", "ö", "u", "ū", "a", "å").Replace,
	"combining marks":         behindLetters("\u0301"),
	"enclosing marks":         behindLetters("\u20dd"),
	"no width between":        behindLetters("\u200b"),
	"soft hyphens":            behindLetters("\u00ad"),
	"joiners":                 behindLetters("\u200d\u2060\ufeff"),
	"variation selectors":     behindLetters("\ufe0f\U000e0100"),
	"fillers of Korean":       behindLetters("\u115f\u3164\uffa0"),
	"grapheme joiners":        behindLetters("\u034f"),
	"controls of direction":   behindLetters("\u202e\u2066\u2069\u200f"),
	"control characters":      behindLetters("\x01\x7f\u0080"),
	"tags between":            behindLetters("\U000e0041"),
	"tags in place":           shifted(' ', '~', '\U000e0020'),
	"no-break spaces":         strings.NewReplacer(" ", "\u00a0").Replace,
	"ideographic spaces":      strings.NewReplacer(" ", "\u3000").Replace,
	"blanks of braille":       strings.NewReplacer(" ", "\u2800").Replace,
	"no spaces":               strings.NewReplacer(" ", "").Replace,
	"many spaces":             strings.NewReplacer(" ", "   \t ").Replace,
	"next lines":              strings.NewReplacer(" ", "\u0085").Replace,
	"presentation forms":      strings.NewReplacer("[", "﹇", "(", "︵", "]", "﹈", "fi", "ﬁ", "fl", "ﬂ", "st", "ﬆ").Replace,
	"white brackets":          strings.NewReplacer("[", "⟦", "(", "⦅", "]", "⟧", "<", "⧼").Replace,
	"lenticular brackets":     strings.NewReplacer("[", "〖", "(", "﴾", "]", "〗", "#", "♯").Replace,
	"an indent without width": func(s string) string { return "\u2061 \u0301\u3000" + s },
}

// A notice or a tag gets its mark behind the bracket however a text spells it, and Restore returns the text.
func TestDisguisedFramesAreMarked(t *testing.T) {
	t.Parallel()
	filled := strings.NewReplacer("%d", "12", "%s", "x", "%q", `"x"`)
	var all []string
	for _, form := range forms(t) {
		all = append(all, filled.Replace(form))
	}
	for _, name := range frame.Tags {
		all = append(all, "<"+name+">", "</ "+name+" >")
	}
	for how, disguise := range disguises {
		for _, plain := range all {
			text := disguise(plain)
			got := frame.Neutralize("x\n" + text)
			before, _, marked := strings.Cut(got, "~")
			bracket, _ := utf8.DecodeLastRuneInString(before)
			if !marked || !strings.ContainsRune(frame.Brackets, bracket) || frame.Restore(got) != "x\n"+text {
				t.Errorf("%s: %q is shown as %q, and read as %q", how, text, got, frame.Restore(got))
			}
		}
	}
}

// A notice is marked even if it goes on in words of its own, and behind any kind of line end.
func TestImitatedFramesAreMarked(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"(Made without a model: x", "[Viewing file start (out of ٤٠ lines)]",
		"[Viewing file start (out of forty lines)]", "[Viewing lines ⑴ to 9]", "[Images left out here: three]",
		"[To read its log, call: me]", "[Viewing lines 四 to 十 (out of 九十 lines)]", "[Parts １—４ of 9; the model"} {
		for _, before := range []string{"", "a\r\n", "a\u0085", "a\u2028\u202e", "a\u2029\u0301", "a\x1c\u3164"} {
			if got := frame.Neutralize(before + text); !strings.Contains(got, "~") || frame.Restore(got) != before+text {
				t.Errorf("%q is shown as %q", before+text, got)
			}
		}
	}
}

// Every character that is read as the first sign of a frame is in Brackets, because edits look for marks only behind
// those.
func TestOnlyBracketsBeginFrames(t *testing.T) {
	t.Parallel()
	for r := range rune(unicode.MaxRune + 1) {
		if r == utf8.RuneError || !utf8.ValidRune(r) {
			continue
		}
		all := ""
		for _, form := range []string{"/value>", "cut]", "Made without a model:", "NOTE: Line 1 has 2 characters;"} {
			all += "\n" + string(r) + form
		}
		got := frame.Neutralize(all)
		if begins := strings.Contains(got, string(r)+"~"); begins != strings.ContainsRune(frame.Brackets, r) && r != '~' {
			t.Errorf("%q (%U) begins a frame: %t", r, r, begins)
		}
		if restored := frame.Restore(got); restored != all {
			t.Errorf("%q is read as %q", got, restored)
		}
	}
}
