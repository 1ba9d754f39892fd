package document_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
	"pgregory.net/rapid"

	"github.com/loci-memory/loci/files/document"
)

const (
	english = "The quick brown fox jumps over the lazy dog.\n\n\tIt was the best of times, it was the worst of times.\n"
	french  = "Le cœur a ses raisons que la raison ne connaît point. Où êtes-vous allés, chère élève ?\nÀ bientôt, à " +
		"la fenêtre.\n"
	german = "Für größere Änderungen müssen wir zuerst die Übersicht prüfen; das heißt, wir fragen die " +
		"Behörde.\nSchöne Grüße!\n"
	polish = "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw.\nSą oni obdarzeni " +
		"rozumem i sumieniem i powinni postępować wobec innych w duchu braterstwa.\n"
	russian = "Все люди рождаются свободными и равными в своём достоинстве и правах.\nОни наделены разумом и совестью.\n"
	greek   = "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.\nΕίναι " +
		"προικισμένοι με λογική.\n"
	turkish = "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana " +
		"sahiptirler.\nBirbirlerine karşı kardeşlik.\n"
	hebrew = "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.\nכולם חוננו בתבונה ובמצפון, לפיכך חובה עליהם " +
		"לנהוג איש ברעהו ברוח של אחווה.\n"
	kana    = "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。\n人間は、理性と良心とを授けられている。\n"
	hangul  = "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.\n인간은 천부적으로 이성과 양심을 부여받았으며 서로 형제애의 정신으로 행동하여야 한다.\n"
	chinese = "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。\n这是我们的工作，也是大家的责任。\n"
	taiwan  = "人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心，並應以兄弟關係的精神相對待。\n這是我們的工作，也是大家的責任。\n"
)

var (
	utf16le = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	utf16be = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
)

// lines returns 40 long lines, each of them the text without its line ends.
func lines(text string) string {
	return strings.Repeat(strings.Repeat(strings.ReplaceAll(text, "\n", ""), 9)+"\n", 40)
}

// samples are texts in common encodings.
var samples = []struct {
	name, charset, text string
	encoding            encoding.Encoding
}{
	{"plain ASCII", "utf-8", english, encoding.Nop},
	{"UTF-8", "utf-8", russian + kana + "\U0001f600", encoding.Nop},
	{"UTF-8 with a mark", "utf-8", french, unicode.UTF8BOM},
	{"UTF-16 little-endian with a mark", "utf-16le", kana, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)},
	{"UTF-16 big-endian with a mark", "utf-16be", english, unicode.UTF16(unicode.BigEndian, unicode.UseBOM)},
	{"UTF-16 little-endian", "utf-16le", english, utf16le},
	{"UTF-16 big-endian", "utf-16be", english, utf16be},
	{"UTF-16 little-endian in Russian", "utf-16le", russian, utf16le},
	{"UTF-16 big-endian in Russian", "utf-16be", russian, utf16be},
	{"UTF-16 little-endian in Korean", "utf-16le", hangul, utf16le},
	{"UTF-16 little-endian in Japanese", "utf-16le", kana, utf16le},
	{"UTF-16 little-endian in Chinese", "utf-16le", lines(chinese), utf16le},
	{"UTF-16 big-endian in Chinese", "utf-16be", lines(taiwan), utf16be},
	{"UTF-32 little-endian with a mark", "utf-32le", greek, utf32.UTF32(utf32.LittleEndian, utf32.UseBOM)},
	{"Windows-1252 in French", "windows-1252", french, charmap.Windows1252},
	{"Latin-1 in German", "windows-1252", german, charmap.ISO8859_1},
	{"Latin-2 in Polish", "iso-8859-2", polish, charmap.ISO8859_2},
	{"Windows-1250 in Polish", "windows-1250", polish, charmap.Windows1250},
	{"Windows-1251", "windows-1251", russian, charmap.Windows1251},
	{"KOI8-R", "koi8-r", russian, charmap.KOI8R},
	{"ISO-8859-5", "iso-8859-5", russian, charmap.ISO8859_5},
	{"Greek", "windows-1253", strings.ReplaceAll(greek, "Ά", "Α"), charmap.ISO8859_7},
	{"Turkish", "windows-1254", turkish, charmap.Windows1254},
	{"Hebrew", "windows-1255", hebrew, charmap.Windows1255},
	{"Shift JIS", "shift_jis", kana, japanese.ShiftJIS},
	{"EUC-JP", "euc-jp", kana, japanese.EUCJP},
	{"ISO-2022-JP", "iso-2022-jp", kana, japanese.ISO2022JP},
	{"GBK", "gb18030", chinese, simplifiedchinese.GBK},
	{"Big5", "big5", taiwan, traditionalchinese.Big5},
	{"EUC-KR", "euc-kr", hangul, korean.EUCKR},
	{"a short table in GBK", "gb18030", "姓名,地址\n张三,北京市\n", simplifiedchinese.GBK},
	{"a short table in Shift JIS", "shift_jis", "名前,住所\n山田,東京\n", japanese.ShiftJIS},
	{"a short table in EUC-KR", "euc-kr", "이름,주소\n김철수,서울\n", korean.EUCKR},
	{"a short table in EUC-JP", "euc-jp", "名前,住所\n山田,東京\n", japanese.EUCJP},
	{"UTF-16 big-endian that ends in an accent", "utf-16be", "café", utf16be},
	{"UTF-16 little-endian that ends in an accent", "utf-16le", "café", utf16le},
}

func encoded(t *testing.T, text string, e encoding.Encoding) []byte {
	t.Helper()
	raw, err := e.NewEncoder().Bytes([]byte(text))
	if err != nil {
		t.Fatalf("encode %q: %v", text, err)
	}
	return raw
}

func TestDecodeFindsTheEncoding(t *testing.T) {
	t.Parallel()
	for _, tt := range samples {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			raw := encoded(t, tt.text, tt.encoding)
			text, charset, err := document.Decode(raw, "")
			if err != nil || text != tt.text || charset != tt.charset {
				t.Errorf("Decode = %q, %q, %v, want %q, %q", text, charset, err, tt.text, tt.charset)
			}
			if media, err := document.Sniff("note.txt", "application/octet-stream", bytes.NewReader(raw),
				int64(len(raw))); err != nil || media != "text/plain" {
				t.Errorf("Sniff = %q, %v, want text/plain", media, err)
			}
		})
	}
}

func TestDecodeKeepsTheTextButForLineEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, raw, want string }{
		{"nothing", "", ""},
		{"CR LF is LF", "a\r\nb\r\n", "a\nb\n"},
		{"CRs before an LF are one line end", "a\r\r\nb", "a\nb"},
		{"CR alone is a line end where there is no other", "a\rb\r\rc\r", "a\nb\n\nc\n"},
		{"CR alone is shown beside other line ends", "10 %\r20 %\rdone\r\nbye\r", "10 %␍20 %␍done\nbye␍"},
		{"blanks, tabs and form feeds are kept", "\ta  \n\n\f b\v\t\n", "\ta  \n\n\f b\v\t\n"},
		{"only the first mark goes", "\ufeff\ufeffa\ufeffb", "\ufeffa\ufeffb"},
		{"colours go", "\x1b[31merror\x1b[0m: no", "error: no"},
		{"separators stay", strings.Repeat("8=FIX\x0135=D\x01", 9), strings.Repeat("8=FIX\x0135=D\x01", 9)},
		{"units and records stay", strings.Repeat("a\x1fb\x1e", 9), strings.Repeat("a\x1fb\x1e", 9)},
		{"NEL is a line end where there is no other", strings.Repeat("ä\u0085", 9), strings.Repeat("ä\n", 9)},
		{"NEL is shown beside other line ends", strings.Repeat("ä\u0085", 9) + "\n", strings.Repeat("ä␤", 9) + "\n"},
		{"DEL goes", strings.Repeat("a\x7f", 9), strings.Repeat("a", 9)},
		{"NULs in a row show as one, after a power loss", "one line\n" + strings.Repeat("\x00", 4096) + "\nthe next line " +
			"of the log\n",
			"one line\n␀\nthe next line of the log\n"},
		{"NULs before a text", strings.Repeat("\x00", 5000) + "a line of the log that follows\n",
			"␀a line of the log that follows\n"},
		{"titles, hyperlinks and moves of a terminal go", "\x1b]0;title\x07a \x1b]8;;https://x\x1b\\link\x1b]8;;\x1b\\ " +
			"b\x1b[2K\x1b[1;1H c\x1b(B\x1b7",
			"a link b c"},
		{"C1 controls go", "a \u009b31mred\u009b0m and \u0080\u0096b" + strings.Repeat(" in a long text", 9),
			"a red and b" + strings.Repeat(" in a long text", 9)},
		{"characters that are struck over stand once", "N\bNA\bAM\bME\bE and _\bu_\bn\n", "NAME and un\n"},
		{"an escape at the end goes", "a\x1b[", "a"},
		{"^Z at the end of a file of DOS stays", "a\n\x1a\x1a", "a\n\x1a\x1a"},
		{"a rare NUL shows", "one line of a log\nand \x00 another one\n", "one line of a log\nand ␀ another one\n"},
		{"a broken byte in UTF-8 shows", "überall größere Öfen für Bäcker, süße Äpfel \xff\n",
			"überall größere Öfen für Bäcker, süße Äpfel \\xff\n"},
		{"what another program could not decode stays", "Gr\ufffd\ufffde", "Gr\ufffd\ufffde"},
		{"an overlong slash is none", "GET /..\xc0\xafetc\n", "GET /..¿Øetc\n"},
		{"an overlong slash in UTF-8 shows", "Er ist größer als schön: \xc0\xaf\n", "Er ist größer als schön: \\xc0\\xaf\n"},
		{"one accent at the very end is Latin-1", "Menu du jour au caf\xe9", "Menu du jour au café"},
		{"a short text that could begin UTF-8", "\xa1\xc3\xd8\xa7\xe0\xb7\xbe\n", "กรุงเทพ\n"},
		{"a character cut at the end shows", "Bäckerei im Städtchen \xc3", `Bäckerei im Städtchen \xc3`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, _, err := document.Decode([]byte(tt.raw), ""); err != nil || got != tt.want {
				t.Errorf("Decode(%q) = %q, %v, want %q", tt.raw, got, err, tt.want)
			}
		})
	}
}

func TestDecodeTakesAHintThatFits(t *testing.T) {
	t.Parallel()
	short := "Еж и уж"
	for _, tt := range []struct{ name, hint, charset, want string }{
		{"koi8-r is taken", "KOI8-R", "koi8-r", short},
		{"windows-1251 is taken, though wrong", "windows-1251", "windows-1251", "еЦ Й ХЦ"},
		{"UTF-8 is not, as the bytes are none", "utf-8", "koi8-r", short},
		{"an unknown name is not", "klingon", "koi8-r", short},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text, charset, err := document.Decode(encoded(t, short, charmap.KOI8R), tt.hint)
			if err != nil || text != tt.want || charset != tt.charset {
				t.Errorf("Decode with hint %q = %q, %q, %v, want %q, %q", tt.hint, text, charset, err, tt.want, tt.charset)
			}
		})
	}
	text, charset, err := document.Decode([]byte("größer"), "koi8-r")
	if err != nil || text != "größer" || charset != "utf-8" {
		t.Errorf("Decode of UTF-8 with another hint = %q, %q, %v, want it as UTF-8", text, charset, err)
	}
}

func TestDeclaredCharset(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, media, contentType, head, want string }{
		{"of the content type", "text/plain", "text/plain; charset=KOI8-R", "", "KOI8-R"},
		{"of an HTML page", "text/html", "", `<html><head><META charset="windows-1251">`, "windows-1251"},
		{"of an older HTML page", "text/html", "text/html", `<meta http-equiv=Content-Type content="text/html; ` +
			`charset=euc-kr">`, "euc-kr"},
		{"of an XML document", "application/xml", "", `<?xml version="1.0" encoding='ISO-8859-2'?>`, "ISO-8859-2"},
		{"nothing", "text/html", "", "<html>", ""},
		{"a text on HTML declares nothing", "text/markdown", "", `<meta charset="big5">`, ""},
		{"a broken content type declares nothing", "text/plain", "; charset=", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := document.DeclaredCharset(tt.media, tt.contentType, []byte(tt.head)); got != tt.want {
				t.Errorf("DeclaredCharset(%q, %q, %q) = %q, want %q", tt.media, tt.contentType, tt.head, got, tt.want)
			}
		})
	}
}

// The probability of an encoding is honest where the right one is not among those that are known.
func TestTheEncodingOfAStrangeTextIsUncertain(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"German in HP Roman-8": "Die Gr\xcf\xdee der Stra\xdee ist gepr\xcfft. \xdbberm\xceige \xdcfen, M\xcfller, " +
			"sch\xcen.",
		"Greek in DOS 737": "\x8d\x9c\xa9\xa1\x9c\xa7\xe1\x9d\xe0 \xab\x9e\xa4 \xaf\xac\xae\xa6\xad\x9f\xe6\xa8\x98 " +
			"\x99\x9b\x9c\xa2\xac\x9a\xa3\xe5\x98 \xab\xa6\xac \xd4\xa4\x9f\xa8\xe0\xa7\xa6\xac",
		"Turkish in DOS 857": "Pijamal\x8d hasta ya\xa7\x8dz \x9fof\x94re \x87abucak g\x81vendi. \x9eark\x8d " +
			"s\x94yl\x81yor, \x87ok g\x81zel \x87i\x87ekler a\x87t\x8d.",
	} {
		got, err := reader.Read(t.Context(), document.Input{MediaType: "text/plain", SizeBytes: int64(len(raw)),
			Body: strings.NewReader(raw)})
		if err != nil || got.Sure > 0.6 {
			t.Errorf("%s was read as %s, sure by %.3f, %v", name, got.Charset, got.Sure, err)
		}
	}
}

func TestDecodeRefusesWhatIsNotText(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 100<<10)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	for name, raw := range map[string][]byte{
		"noise":                       noise,
		"a NUL":                       {0},
		"a NUL among few letters":     []byte("abc\x00def"),
		"names that end in NUL":       []byte("./a.txt\x00./b.txt\x00./c.txt\x00"),
		"an environment":              []byte("PATH=/usr/bin\x00HOME=/root\x00LANG=C\x00"),
		"a NUL at an odd place":       []byte("abc\x00def\n"),
		"a script and its payload":    append([]byte("#!/bin/sh\ntail -c +99 $0 | tar x\n"), noise...),
		"noise written as UTF-8":      []byte(strings.ToValidUTF8(string(noise), "\ufffd")),
		"small numbers of four bytes": bytes.Repeat([]byte{1, 0, 0, 0, 2, 0, 0, 0}, 1000),
		"small numbers of two bytes":  bytes.Repeat([]byte{1, 0, 2, 0, 7, 0, 3, 0}, 1000),
	} {
		if text, charset, err := document.Decode(raw, ""); !isUnreadable(err) {
			t.Errorf("Decode of %s = %d bytes as %s, %v, want ErrInvalid", name, len(text), charset, err)
		}
	}
}

func TestDecodeRefusesEBCDIC(t *testing.T) {
	t.Parallel()
	for _, page := range []*charmap.Charmap{charmap.CodePage037, charmap.CodePage1047, charmap.CodePage1140} {
		for _, text := range []string{english, german, "Hello World", "       IDENTIFICATION DIVISION.\n"} {
			_, _, err := document.Decode(encoded(t, text, page), "")
			if !isUnreadable(err) || !strings.Contains(err.Error(), "EBCDIC") {
				t.Errorf("Decode(%q as %s) = %v, want an UnreadableError that names EBCDIC", text, page, err)
			}
		}
	}
}

// checkText fails if Decode returns a text that cannot be stored.
func checkText(t interface{ Fatalf(string, ...any) }, raw []byte) {
	text, _, err := document.Decode(raw, "")
	switch {
	case err != nil && !isUnreadable(err):
		t.Fatalf("Decode(%q): %v, want ErrInvalid", raw, err)
	case !utf8.ValidString(text) || strings.Contains(text, "\x00"):
		t.Fatalf("Decode(%q) = %q: not valid UTF-8 without NUL", raw, text)
	case strings.Contains(text, "\r\n") || len(text) > 4*len(raw)+4:
		t.Fatalf("Decode(%q) = %q: CR LF, or too long", raw, text)
	}
}

func TestDecodedTextCanBeStored(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var raw []byte
		for range rapid.IntRange(0, 8).Draw(t, "pieces") {
			s := rapid.SampledFrom(samples).Draw(t, "sample")
			piece, _ := s.encoding.NewEncoder().Bytes([]byte(s.text))
			cut := rapid.IntRange(0, len(piece)).Draw(t, "cut")
			raw = append(append(raw, piece[:cut]...), rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "noise")...)
		}
		checkText(t, raw)
	})
}

func FuzzDecode(f *testing.F) {
	for _, s := range samples {
		raw, _ := s.encoding.NewEncoder().Bytes([]byte(s.text))
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) { checkText(t, raw) })
}

// What a text leaves out, and how sure its encoding is, is said.
func TestPlainTextSaysWhatItCouldNotShow(t *testing.T) {
	t.Parallel()
	read := func(raw, charset string) document.Text {
		got, err := reader.Read(t.Context(), document.Input{MediaType: "text/plain", SizeBytes: int64(len(raw)),
			Charset: charset, Body: strings.NewReader(raw)})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	czech := string(encoded(t, "Příliš žluťoučký kůň úpěl ďábelské ódy", charmap.Windows1250))
	for _, tt := range []struct{ claim, raw, charset, text, found, omitted string }{
		{"NULs", "one long line of a log\n\x00\x00\x00two\n\x00three is long enough to be a text of its own\n", "", "one " +
			"long line of a " +
			"log\n␀two\n␀three is " +
			"long enough to be a text of its own\n", "utf-8", "4 NUL bytes (lines 2–3)"},
		{"broken bytes", "grün, schön und\nmüde wie nie \xff\n", "", "grün, schön und\nmüde wie nie \\xff\n", "utf-8", "1 " +
			"undecodable byte (line 2)"},
		{"the encoding that is chosen", "\xe0\xe8\xec", "windows-1250", "ŕčě", "windows-1250", ""},
		{"an encoding that does not fit", czech + "\x81", "cp1250", "Příliš žluťoučký kůň úpěl ďábelské ódy\\x81",
			"windows-1250",
			"1 undecodable byte (line 1)"},
		{"UTF-8 against all that the bytes say", "gr\xfcn", "UTF-8", "gr\\xfcn", "utf-8", "1 undecodable byte (line 1)"},
		{"a short text in Shift JIS", "\x93\xfa\xff\x96{", "cp932", "日\\xff本", "shift_jis", "1 undecodable byte (line 1)"},
		{"UTF-16 with its mark", "\xfe\xff\x00a", "utf-16", "a", "utf-16", ""},
		{"UTF-16 without one", "\x00a", "utf-16be", "a", "utf-16be", ""},
		{"ASCII against all that the bytes say", "M\xfcller", "ascii", "M\\xfcller", "us-ascii",
			"1 undecodable byte (line 1)"},
		{"Mac OS in Central Europe", "P\xde\x92li\xe4 \xec", "mac_ce", "Příliš ž", "x-mac-ce", ""},
		{"Mac OS in Greek", "\xc1\xec\xe6\xe1", "x-mac-greek", "Νλφα", "x-mac-greek", ""},
		{"mainframes", "\xc8\x85\x93\x93\x96\x15\x5a", "cp037", "Hello\n!", "ibm037", ""},
		{"mainframes in Germany", "\xc8\x43\x84\x25\xc0", "ibm273", "H{d\nä", "ibm273", ""},
		{"Korean in seven bits", "\x1b$)C\x0e?@4C\x0f a\n", "iso-2022-kr", "오늘 a\n", "iso-2022-kr", ""},
		{"so it is by its form", "\x1b$)C\x0e?@4C\x0f a\n", "", "오늘 a\n", "iso-2022-kr", ""},
		{"HZ", "~{OB4N;aRi~} 1", "hz", "下次会议 1", "hz-gb-2312", ""},
		{"UTF-7", "caf+AOk- +2D3eAA 1 +- 1", "utf-7", "café 😀 1 + 1", "utf-7", ""},
		{"UTF-32 without a mark", "a\x00\x00\x00\xe9\x00\x00\x00\n\x00\x00\x00", "", "aé\n", "utf-32le", ""},
		{"UTF-32 big-endian without a mark", "\x00\x00\x00a\x00\x00\x00\xe9\x00\x00\x01\x59", "", "aéř", "utf-32be", ""},
		{"DOS", "M\x81ller", "cp850", "Müller", "ibm850", ""},
	} {
		got := read(tt.raw, tt.charset)
		if said := document.ListOmissions(got.Omitted); got.Text != tt.text || got.Charset != tt.found || said != tt.omitted {
			t.Errorf("%s: got %q in %s, omitted %q, want %q in %s, omitted %q", tt.claim, got.Text, got.Charset, said, tt.text,
				tt.found, tt.omitted)
		}
	}
	if sure := read("plain\n", "").Sure; sure != 1 {
		t.Errorf("UTF-8 is sure by %v", sure)
	}
	if long, short := read(strings.Repeat(czech+"\n", 9), "").Sure, read("\xe8", "").Sure; long < 0.99 || short > 0.9 {
		t.Errorf("a long text is sure by %v, one letter by %v", long, short)
	}
	for name, known := range map[string]bool{"cp1250": true, "Latin-1": true, "mac-roman": true, "ISO-8859-8": true,
		"utf-8":  true,
		"UTF-16": true, "ibm852": true, "klingon": false, "": false, "cp037": true,
		"x-mac-ce": true, "iso-2022-kr": true, "utf-7": true, "ibm500": true, "ascii": true, "x-user-defined": false} {
		if err := document.CheckCharset(name); (err == nil) != known || !known && !strings.Contains(err.Error(),
			"windows-1250") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
