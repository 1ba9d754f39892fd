package document

import (
	"bytes"
	"cmp"
	"mime"
	"regexp"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/saintfish/chardet"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
)

// DeclaredCharset returns the charset that an upload declares, as a hint for Decode. It looks in the content type, in
// an HTML page's <meta>, and in an XML document's declaration. It returns "" if there is none.
func DeclaredCharset(mediaType, contentType string, head []byte) string {
	if _, params, err := mime.ParseMediaType(contentType); err == nil && params["charset"] != "" {
		return params["charset"]
	}
	if m := declaration.FindSubmatch(head[:min(len(head), sniffBytes)]); m != nil && declares[mediaType] {
		return string(bytes.Join(m[1:], nil))
	}
	return ""
}

var declaration = regexp.MustCompile(`(?i)<meta\s[^>]*charset\s*=\s*["']?\s*([\w.:-]+)` +
	`|^\s*<\?xml\s[^>]*encoding\s*=\s*["']([\w.:-]+)`)

var declares = setOf(`text/html application/xhtml+xml application/xml text/xml image/svg+xml application/rss+xml
	application/atom+xml`)

// decodeLegacy decodes text that is not Unicode. It uses the charset of hint if every byte is valid in it, otherwise
// statistics.
func decodeLegacy(raw []byte, hint string) (text, name string) {
	if e, name := charsetNamed(hint); e != nil {
		if text := decoded(raw, e); badRunes(text) == 0 {
			return text, name
		}
	}
	e, name := guessCharset(legacySample(raw))
	return decoded(raw, e), name
}

// guessCharset returns the likeliest encoding that can decode the whole sample. If there is none, it returns the one
// that loses the least.
func guessCharset(sample []byte) (best encoding.Encoding, name string) {
	best, name = charsetNamed("windows-1252")
	least := badRunes(decoded(sample, best)) + 1
	guesses, _ := chardet.NewTextDetector().DetectAll(sample) // empty if there is an error
	slices.SortFunc(guesses, func(a, b chardet.Result) int {
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), cmp.Compare(rareIn(sample, a), rareIn(sample, b)),
			cmp.Compare(a.Charset, b.Charset))
	})
	for _, guess := range guesses {
		e, named := charsetNamed(charsetOf(guess, sample))
		if e == nil {
			continue
		}
		if bad := badRunes(decoded(sample, e)); bad < least {
			best, name, least = e, named, bad
		}
	}
	return best, name
}

// commonPairs lists, per East Asian encoding, the bytes of common characters: the range of the first byte, and the
// lowest second byte. Narrow encodings come first, because their texts are also valid in the wider ones.
var commonPairs = []struct {
	charset         string
	from, to, trail byte
}{
	{"Shift_JIS", 0x81, 0x97, 0x40}, {"EUC-KR", 0xa1, 0xc8, 0xa1}, {"EUC-JP", 0xa1, 0xcf, 0xa1},
	{"GB-18030", 0xa1, 0xd7, 0xa1}, {"Big5", 0xa1, 0xc6, 0x40},
}

// rareIn helps to decide between East Asian encodings, which the library cannot tell apart in short texts. It returns
// how many rare characters the sample has in an encoding; on a tie, a narrower encoding gets the lower value. It
// returns 0 for any other encoding.
func rareIn(sample []byte, guess chardet.Result) int {
	for i, c := range commonPairs {
		if c.charset != guess.Charset {
			continue
		}
		rare := 0
		for j := 0; j < len(sample); j++ {
			if sample[j] < 0x80 {
				continue
			}
			if j++; j == len(sample) || sample[j-1] < c.from || sample[j-1] > c.to || sample[j] < c.trail {
				rare++
			}
		}
		return rare*len(commonPairs) + i
	}
	return 0
}

// isEBCDIC reports whether the bytes are EBCDIC. They must consist of letters, digits and blanks that all its code
// pages share, and have no blanks or line feeds of other encodings.
func isEBCDIC(raw []byte) bool {
	sample := raw[:min(len(raw), 64<<10)]
	if bytes.ContainsAny(sample, " \n") || bytes.Count(sample, []byte{0x40})*20 <= len(sample) { // 0x40 is EBCDIC's blank
		return false
	}
	plain := 0
	for _, b := range sample {
		r := charmap.CodePage037.DecodeByte(b)
		if r < utf8.RuneSelf && (r == ' ' || unicode.IsLetter(r) || unicode.IsDigit(r)) {
			plain++
		}
	}
	return plain*5 >= len(sample)*4
}

// A guessed language counts only with a confidence of at least sureLanguage, of 100, and from sureBytes bytes on.
// Otherwise languages that share a charset tie, and the library names any of them.
const (
	sureLanguage = 30
	sureBytes    = 100
)

// charsetOf corrects the charset of guesses for Central European languages, for which the library names Latin-1.
func charsetOf(guess chardet.Result, sample []byte) string {
	central := guess.Confidence >= sureLanguage && len(sample) >= sureBytes &&
		slices.Contains([]string{"cs", "hu", "pl", "ro"}, guess.Language)
	switch {
	case central && guess.Charset == "ISO-8859-1":
		return "iso-8859-2"
	case central && guess.Charset == "windows-1252":
		return "windows-1250"
	case guess.Charset == "GB-18030":
		return "gb18030"
	}
	return guess.Charset
}

// legacySample returns up to 64 KiB of lines with bytes beyond ASCII.
func legacySample(raw []byte) []byte {
	const most = 64 << 10
	var sample []byte
	for line := range bytes.Lines(raw) {
		if bytes.ContainsFunc(line, func(r rune) bool { return r >= 0x80 }) {
			sample = append(sample, line[:min(len(line), most-len(sample))]...)
		}
		if len(sample) == most {
			break
		}
	}
	return sample
}

// charsetNamed returns the encoding that the web knows by a name, and its usual name. It returns nil if there is none.
func charsetNamed(label string) (encoding.Encoding, string) {
	e, name := charset.Lookup(label)
	if e == nil || name == "replacement" || name == "utf-8" || name == "x-user-defined" {
		return nil, ""
	}
	return e, name
}
