package lexicon_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/loci-memory/loci/embed/lexicon"
)

func TestTerms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"nothing", " \n\t.,;–", ""},
		{"stop words are left out", "To be or not to be, that is the question", "question"},
		{"what an apostrophe leaves too", "We don't, they've; the dog’s bone", "dog bone"},
		{"names that are stop words stay", "I met Will in May. The US, it says, has no IT; who is WHO? Ask Don's aunt",
			"meet will may us say it who ask don aunt"},
		{"at the beginning of a sentence too", "Will called.\nWill: hello! May 5 is free", "will call will hello may 5 free"},
		{"the beginning of a sentence is no name", "It is so. The end. Will you come? \"May I?\" Don't", "end come"},
		{"words of camel case are no names", "isNotExist ToBe", "exist isnotexist tobe"},
		{"words are stemmed", "connections connected Connecting", "connect connect connect"},
		{"irregular forms take their base", "went children mice Women thought", "go child mous woman think"},
		{"camel case gives parts and whole", "ReadAll lastUsed", "read readal last use lastus"},
		{"an acronym is a part", "parseHTTPServer XMLHttpRequest",
			"pars http server parsehttpserv xml http request xmlhttprequest"},
		{"a plural acronym is a word", "URLs IDs JSONs, APIs", "url id json api"},
		{"dots and paths part", "os.ReadFile /etc/hosts", "os read file readfil etc host"},
		{"what is joined gives parts and whole", "read_file max-open-files -x --max_size _private_",
			"read file readfil max open file maxopenfil x max size maxsiz privat"},
		{"a list of more than four has no whole", "a1-b-c-d-e-f_g", "1 a1 b c e f g"},
		{"numbers with letters give both and the whole", "utf8 sha256Sum SHA-256 H.264 10mb",
			"utf 8 utf8 sha 256 sha256 sum sha256sum sha 256 sha256 h 264 h264 10 mb 10mb"},
		{"other mixtures stay", "H2O a3f9c 4th 3D 0x1F", "h2o a3f9c 4th 3d 0x1f"},
		{"dates are a day, and fall into numbers", "2023-05-07; 7 May 2023", "20230507 2023 05 07 20230507 7 may 2023"},
		{"part numbers have beginnings", "SN74LS00N BC547B", "sn74ls00n sn74 sn74ls sn74ls00 bc547b bc547"},
		{"numbers with signs between them are one, too", "978-3-16-148410-0 +49 30 1234567",
			"9783161484100 316148410x 978 3 16 148410 0 49301234567 tel01234567 49 30 1234567"},
		{"thousands are one number", "18,500 1_000_000 $2,000,000.50 1,2,3 12,34", "18500 1000000 2000000 50 1 2 3 12 34"},
		{"upper case is one word", "README MAX_INT", "readm max int maxint"},
		{"diacritics do not matter", "Café cafe\u0301 CAFE naïve", "cafe cafe cafe naiv"},
		{"umlauts are written both ways", "the Müller and the mueller of MÜLLER, and of its Größe",
			"muller mueller mueller muller mueller gross groess"},
		{"letters that do not decompose", "Straße STRASSE ſmørrebrød Łódź cœur", "strass strass smorrebrod lodz coeur"},
		{"words of a family are one term", "experiment experimenting experimentation describe description decisions decide",
			"experi experi experi describ describ decid decid"},
		{"Cyrillic and Greek words are stemmed by their script", "Привет ёлка ёлки λόγος λόγου",
			"привет елк елк λογ λογ"},
		{"compatibility forms are read", "ﬁle Ａｐｉ x²", "file api x 2 x2"},
		{"vowel signs of other scripts stay", "हिन्दी किताबें", "हिन्द किताब"},
		{"Hangul gives pairs, whose words have endings", "한국어 문서", "한국 국어 문서"},
		{"scripts without spaces give pairs", "記憶は失われない", "记忆 忆は は失 失わ われ れな ない"},
		{"a single character is itself", "猫 a1猫", "猫 1 a1 猫"},
		{"Thai gives pairs", "แมว", "แม มว"},
		{"mixed text", "Go言語でJSONを", "go 言语 语で json を"},
		{"katakana with its long mark", "サーバー", "サー ーバ バー"},
		{"invalid bytes part words", "one\xfftwo", "one two"},
		{"marks alone are nothing", "\u0301 \u0940", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(strings.Fields(c.want), lexicon.EnglishTerms(c.text),
				cmp.Transformer("", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
				t.Errorf("Terms(%q): -want +got\n%s", c.text, diff)
			}
		})
	}
}

func TestDocumentAndQueryMeetWhateverTheWriting(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"PostgreSQL", "postgresql"}, {"ReadAll", "read"}, {"readAll", "READALL"}, {"max_open_files", "open files"},
		{"GitHub", "github"}, {"she went home", "go"}, {"記憶は失われない", "記憶"}, {"Müller", "muller"}, {"JSONParser", "json"},
		{"Müller", "Mueller"}, {"Strasse", "straße"}, {"max_wal_size", "maxWalSize"}, {"SHA-256", "sha256"},
		{"utf8", "UTF-8"},
		{"Python 3", "python3"}, {"H.264", "h264"}, {"18,500 people", "18500"}, {"회의록을 보냈다", "회의록"},
		{"the timezone", "time zone"}, {"parse the config", "configuration"}, {"strconv", "str_conv"},
		{"MySQL8", "mysql"}, {"PyTorch2", "pytorch"}, {"iOS17", "ios"}, {"OAuth2", "oauth"}, {"PostgreSQL16", "postgresql"},
		{"LaTeX3e", "latex"}, {"WiFi6", "wifi"}, {"IPv6", "ipv"}, {"sparkline_HTTPServer2", "httpserver"},
		{"data\u00ADbase", "database"}, {"pass\u2060word", "password"}, {"database", "data\u200Bbase"},
		{"می\u200cخواهم", "میخواهم"}, {"δρόμος", "ΔΡΟΜΟΣ"}, {"Οδός", "ΟΔΟΣ"}, {"ΟΔΥΣΣΕΥΣ", "οδυσσεύς"},
		{"Let us celebrate 🎉🥳 tonight.", "🎉"}, {"👍🏽", "👍"}, {"👩\u200d💻 at work", "💻"}, {"❤\uFE0F", "❤"},
		{"🇩🇪", "🇩🇪"}, {"18'500", "18,500"}, {"18.500", "18500"}, {"18,500", "18.500"}, {"18,500", "18 500"},
		{"1.234.567,89", "1,234,567.89"}, {"SN74LS00N", "sn74ls00"}, {"STM32F103C8T6", "STM32F103"}, {"1N4148W", "1n4148"},
		{"ISBN 978-3-16-148410-0", "9783161484100"}, {"9783161484100", "978-3-16-148410-0"},
		{"ISBN 978 3 16 148410 0.", "ISBN 3-16-148410-X"}, {"0-8044-2957-X", "080442957X"}, {"080442957X", "0 8044 2957 X"},
		{"EAN 4 006381 333931", "4006381333931"}, {"Call +49 30 1234567.", "030/1234567"}, {"(555) 123-4567", "555 123 4567"},
		{"+1 555 123 4567", "555-123-4567"}, {"0301234567", "+49 (30) 1234567"},
		{"third quarter of 2025", "Q3 2025"}, {"2025-Q3", "third quarter 2025"}, {"Q3/2025", "2025Q3"},
		{"im 3. Quartal 2025", "Q3 2025"}, {"au troisième trimestre 2025", "2025 Q3"}, {"3rd quarter, 2025", "2025-Q3"},
		{"15 April 2025", "2025-04-15"}, {"April 15th, 2025", "15.04.2025"}, {"15. April 2025", "4/15/2025"},
		{"el 15 de abril de 2025", "April 15 2025"}, {"15 апреля 2025", "15 April 2025"}, {"2025/4/15", "15/4/2025"},
		{"資料庫", "资料库"}, {"软件", "軟件"}, {"學習漢語", "学习"},
	} {
		document, query := lexicon.Document(c[0]).Terms, lexicon.NewIDF(nil, 0).Query(c[1]).Vector.Indices()
		if !slices.ContainsFunc(query, func(id int32) bool { return slices.Contains(document, id) }) {
			t.Errorf("%q is not found by %q: %v and %v", c[0], c[1], lexicon.Terms(c[0]), lexicon.Terms(c[1]))
		}
	}
}

// Words that look alike in some way are still different.
func TestOtherWordsDoNotMeet(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"PostgreSQL16", "mysql"}, {"🎉", "🥳"}, {"10.0.0.1", "1000"}, {"1.24.300", "124300"},
		{"┌──┐ →", "└─ ←"}, {"2024 300", "2024300"}, {"18,5000", "185000"},
		{"10 to 15 April 2025", "20250415"}, {"10–15 April 2025", "20250415"}, {"15 April 2025 – 3 May 2025", "20250415"},
		{"2025-04-15 to 2025-05-01", "20250415"}, {"99 April 2025", "20250499"}, {"978-3-16-148410-1", "9783161484101"},
		{"a3f9c2b1", "a3f9"}, {"0x1F2A", "0x1"},
	} {
		for _, term := range lexicon.Terms(c[1]) {
			if term != "sql" && slices.Contains(lexicon.Terms(c[0]), term) {
				t.Errorf("%q is found by %q: %v and %v", c[0], c[1], lexicon.Terms(c[0]), lexicon.Terms(c[1]))
			}
		}
	}
}

func TestHostileTextIsBounded(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	if got := lexicon.Terms(strings.Repeat("a", size)); len(got) != 1 || len(got[0]) != 64 {
		t.Errorf("a word of 8 MB: got %d terms, want one of 64 letters", len(got))
	}
	if got := lexicon.Terms(strings.Repeat("é", 1000)); len(got) != 1 || utf8.RuneCountInString(got[0]) != 64 {
		t.Errorf("a word of 1,000 accented letters: got %d terms, want one of 64", len(got))
	}
	for _, unit := range []string{"aB", "A", "a\u0301", "\u0301", "界", "'", "1", "s", "\xff", "Ab1_",
		"🎉", "🇩", "1.", "111'", "\u00AD"} {
		lexicon.Document(strings.Repeat(unit, (1<<18)/len(unit)))
	}
}

func TestTermsHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`([A-Za-z0-9_ .'é界ー]{0,40})`)).Draw(t, "text")
		terms := lexicon.EnglishTerms(text)
		for _, term := range terms {
			if n := utf8.RuneCountInString(term); n == 0 || n > 64 || !utf8.ValidString(term) {
				t.Fatalf("term %q of %d characters", term, n)
			}
		}
		if again := lexicon.EnglishTerms(text); !slices.Equal(terms, again) {
			t.Fatalf("got %q, then %q", terms, again)
		}
		other := rapid.String().Draw(t, "other")
		joined := lexicon.EnglishTerms(text + "\n" + other)
		if want := append(terms, lexicon.EnglishTerms(other)...); !slices.Equal(joined, want) {
			t.Fatalf("of two lines: got %q, want those of each %q", joined, want)
		}
	})
}

func FuzzDocument(f *testing.F) {
	f.Add("ReadAll the children's 記憶\xff\u0301")
	f.Fuzz(func(t *testing.T, text string) {
		lex := lexicon.Document(text)
		if !slices.IsSorted(lex.Terms) || len(lex.Terms) != len(lex.Vector.Values()) {
			t.Errorf("%q: terms %v of %v", text, lex.Terms, lex.Vector)
		}
	})
}

// Plain words are read in a fast way. The slow way finds the same words.
func TestPlainWordsAreReadAsAllOthers(t *testing.T) {
	t.Parallel()
	if _, end := lexicon.PlainEnd("aba bab"); end == 0 {
		t.Error("a plain word is not read quickly")
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[aZ1é][abAB1é]{0,3}([-_., ]?[ab1A, \x{300}文]{0,2}){0,3}`).Draw(t, "text")
		words, end := lexicon.PlainEnd(text)
		if end == 0 {
			return
		}
		want, wantEnd := lexicon.Joined(text)
		if !slices.Equal(words, want) || end != wantEnd {
			t.Fatalf("%q: got %q up to %d, want %q up to %d", text, words, end, want, wantEnd)
		}
	})
}

// A day is preferred to a range that has the same words.
func TestADayIsPreferredToARange(t *testing.T) {
	t.Parallel()
	day, ranged := "The audit is on 15 April 2025 in Bonn.", "The audit is from 15 April 2025 to 2 May 2025 in Bonn."
	var sample [][]int64
	for _, text := range []string{day, ranged, "The fair is in May 2025."} {
		sample = append(sample, lexicon.Owned(0, lexicon.Document(text).Terms))
	}
	for _, query := range []string{"15 April 2025", "2025-04-15", "audit on April 15, 2025"} {
		q := lexicon.NewIDF(sample, len(sample)).Query(query)
		if a, b := score(q, day), score(q, ranged); a <= b {
			t.Errorf("%q: the day has a score of %.2f, and the range of %.2f", query, a, b)
		}
	}
}

// score returns the BM25 score of a text.
func score(q lexicon.Query, text string) (sum float32) {
	d := lexicon.Document(text)
	for i, id := range q.Vector.Indices() {
		if k, has := slices.BinarySearch(d.Terms, id); has {
			sum += q.Vector.Values()[i] * d.Vector.Values()[k]
		}
	}
	return sum
}
