package document

import (
	"bytes"
	"cmp"
	"fmt"
	"mime"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/simplifiedchinese"
	utf16 "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
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

// chosenCharset returns the encoding of a name that an uploader gives, and its usual name. It returns nil if there is
// none.
func chosenCharset(name string) (encoding.Encoding, string) {
	own, label := ownCharset(name)
	if own != nil {
		return own, label
	}
	switch label {
	case "utf-8", "utf8":
		return encoding.Nop, "utf-8"
	case "utf-16":
		return utf16.UTF16(utf16.LittleEndian, utf16.UseBOM), "utf-16"
	case "utf-32le":
		return marks[1].encoding, label
	case "utf-32be":
		return marks[2].encoding, label
	default:
		return charsetNamed(label)
	}
}

// hintedCharset returns the encoding that a file declares by a name, as charsetNamed does.
func hintedCharset(name string) (encoding.Encoding, string) {
	if e, own := ownCharset(name); e != nil && !isHost(own) {
		return e, own
	}
	return charsetNamed(name)
}

// ownCharset returns one of ownCharsets by one of its names, and its usual name.
func ownCharset(name string) (encoding.Encoding, string) {
	label := canonicalLabel(name)
	label = cmp.Or(ownLabels[strings.ReplaceAll(label, "_", "-")], label)
	return ownCharsets[label], label
}

// isHost reports whether an encoding is one of mainframes, as far as chosenCharset knows it.
func isHost(charset string) bool {
	return setOf("ibm037 ibm273 ibm500 ibm1047 ibm1140")[charset]
}

// CheckCharset returns *UnknownCharsetError if no encoding has a name.
func CheckCharset(name string) error {
	if e, _ := chosenCharset(name); e == nil {
		return &UnknownCharsetError{name}
	}
	return nil
}

// UnknownCharsetError says that no encoding has a name, and names encodings.
type UnknownCharsetError struct{ Name string }

func (e *UnknownCharsetError) Error() string {
	return fmt.Sprintf("the encoding '%s' is not known; encodings are named as on the web, such as utf-8, utf-16le, "+
		"windows-1250, windows-1251, windows-1252, iso-8859-2, iso-8859-15, koi8-r, macintosh, x-mac-ce, ibm437, ibm850, "+
		"ibm852, ibm866, ibm037, ibm500, windows-874, shift_jis, euc-jp, euc-kr, gb18030, big5", e.Name)
}

const hostAdvice = "The file is in EBCDIC, the encoding of mainframes. Save it as UTF-8, or upload it with " +
	"encoding=ibm037 (United States), ibm273 (Germany), ibm500 (international), ibm1047 (Unix) or ibm1140 (with the euro)."

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

// charsetNamed returns the encoding that the web or IANA knows by a name, and its usual name. It returns nil if there
// is none, for UTF-8, and for encodings of EBCDIC.
func charsetNamed(label string) (encoding.Encoding, string) {
	label = canonicalLabel(label)
	e, name := charset.Lookup(label)
	switch name {
	case "utf-8", "x-user-defined":
		return nil, ""
	case "gbk":
		return simplifiedchinese.GB18030, "gb18030" // which has all of it
	case "", "replacement":
		found, err := ianaindex.IANA.Encoding(label)
		if err != nil || found == nil || isHostCharset(found) {
			return nil, ""
		}
		e = found
		if name, err = ianaindex.IANA.Name(found); err != nil {
			return nil, ""
		}
		name = strings.ToLower(name)
	}
	return e, name
}

// isHostCharset reports whether an encoding is one of mainframes.
func isHostCharset(e encoding.Encoding) bool {
	return e == charmap.CodePage037 || e == charmap.CodePage1047 || e == charmap.CodePage1140
}

// charsetLabels maps names that are not in the lists of the web and of IANA to ones that are.
var charsetLabels = map[string]string{
	"cp932": "shift_jis", "cp936": "gb18030", "cp949": "euc-kr", "cp950": "big5", "mac-roman": "macintosh",
	"macroman": "macintosh", "mac-cyrillic": "x-mac-cyrillic", "maccyrillic": "x-mac-cyrillic", "latin-1": "latin1",
	"latin-2": "latin2", "ansi": "windows-1252", "tis-620": "windows-874", "cp874": "windows-874",
}

// canonicalLabel returns a name of a charset as the lists have it.
func canonicalLabel(label string) string {
	label = strings.ToLower(strings.TrimSpace(label))
	return cmp.Or(charsetLabels[strings.ReplaceAll(label, "_", "-")], charsetLabels[label], label)
}

type boundMark struct {
	mark     string
	charset  string
	encoding encoding.Encoding
}

// marks are the byte order marks. If one mark is the beginning of another, the longer one comes first.
var marks = []boundMark{
	{"\xef\xbb\xbf", "utf-8", encoding.Nop},
	{"\xff\xfe\x00\x00", "utf-32le", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)},
	{"\x00\x00\xfe\xff", "utf-32be", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)},
	{"\xff\xfe", "utf-16le", utf16.UTF16(utf16.LittleEndian, utf16.IgnoreBOM)},
	{"\xfe\xff", "utf-16be", utf16.UTF16(utf16.BigEndian, utf16.IgnoreBOM)},
}

// decoded returns valid UTF-8. Bytes that are invalid in the encoding become U+FFFD.
func decoded(raw []byte, e encoding.Encoding) string {
	out, err := e.NewDecoder().Bytes(raw)
	if err != nil {
		out = raw
	}
	return strings.ToValidUTF8(string(out), "\ufffd")
}
