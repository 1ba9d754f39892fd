package document

import (
	"bytes"
	"encoding/base64"
	"mime"
	"regexp"
	"strings"
)

// mailHeader maps the names of header fields, in lower case, to their values: unfolded, with encoded words.
type mailHeader map[string][]string

// first returns the first value of a field, or "" if there is none.
func (h mailHeader) first(name string) string {
	if values := h[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// isMail reports whether the header is that of a message, and not the beginning of some other text.
func (h mailHeader) isMail() bool {
	for _, name := range []string{"from", "to", "subject", "date", "received", "message-id", "mime-version",
		"content-type"} {
		if len(h[name]) > 0 {
			return true
		}
	}
	return false
}

// maxHeaderFields is how many fields of one header are kept.
const maxHeaderFields = 10_000

// splitHeader splits a message or a part into its header and its body. A line without a colon continues the field
// before it, although it is not indented. If the first line is no field, there is no header.
func splitHeader(raw []byte) (mailHeader, []byte) {
	h, name, fields, rest := mailHeader{}, "", 0, raw
	var value []byte
	keep := func() {
		if name != "" {
			h[name] = append(h[name], string(bytes.TrimSpace(value)))
		}
	}
	for len(rest) > 0 {
		line, after := cutLine(rest)
		if rest = after; len(line) == 0 {
			break
		}
		found := headerField.FindSubmatchIndex(line)
		switch {
		case found != nil && fields < maxHeaderFields:
			keep()
			fields++
			name, value = strings.ToLower(string(line[:found[3]])), bytes.Clone(line[found[1]:])
		case name != "":
			value = append(append(value, ' '), bytes.TrimSpace(line)...)
		case line[0] != ' ' && line[0] != '\t':
			return mailHeader{}, raw
		}
	}
	keep()
	return h, rest
}

var headerField = regexp.MustCompile(`^([!-9;-~]+)[ \t]*:`)

// cutLine returns the first line without its end, and what follows it.
func cutLine(raw []byte) (line, after []byte) {
	line, after, _ = bytes.Cut(raw, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), after
}

// shown returns the value of a field as a reader sees it. hint is the charset of bytes that are not ASCII.
func shown(value, hint string) string {
	text := encodedWords.ReplaceAllStringFunc(value, decodeWords)
	if text == value && !isASCII(value) {
		text = decodeBytes([]byte(value), hint)
	}
	return onOneLine(visible(cleanText(strings.ToValidUTF8(text, "\ufffd"))))
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}

// Encoded words of RFC 2047, with the language of RFC 2231. Words that follow each other are one text.
const encodedWord = `=\?([\w.:-]+)(?:\*[\w-]*)?\?([bBqQ])\?([^?]*)\?=`

var (
	encodedWords = regexp.MustCompile(encodedWord + `(?:[ \t]*` + encodedWord + `)*`)
	oneWord      = regexp.MustCompile(encodedWord)
)

// decodeWords decodes encoded words that follow each other. Some programs cut a character between two words: the bytes
// of words in one charset are joined before they are decoded.
func decodeWords(words string) string {
	var b strings.Builder
	var joined []byte
	charset := ""
	flush := func() {
		if len(joined) > 0 {
			b.WriteString(decodeBytes(joined, charset))
		}
		joined = nil
	}
	for _, word := range oneWord.FindAllStringSubmatch(words, -1) {
		if !strings.EqualFold(word[1], charset) {
			flush()
			charset = word[1]
		}
		if strings.EqualFold(word[2], "b") {
			joined = append(joined, fromBase64([]byte(word[3]))...)
		} else {
			joined = append(joined, fromQuotedPrintable([]byte(strings.ReplaceAll(word[3], "_", " ")))...)
		}
	}
	flush()
	return b.String()
}

// decodeBytes decodes bytes in a charset that a mail declares, which may be wrong or unknown.
func decodeBytes(raw []byte, declared string) string {
	if strings.EqualFold(declared, "utf-7") {
		return decodeUTF7(raw)
	}
	if text, _, err := Decode(raw, declared); err == nil {
		return text
	}
	return strings.ToValidUTF8(string(raw), "\ufffd")
}

// mediaTypeOf returns the media type that a field declares, and its parameters. It accepts malformed parameters, which
// the standard library refuses together with the media type.
func mediaTypeOf(field string) (string, map[string]string) {
	media, params, err := mime.ParseMediaType(field)
	if err == nil {
		return media, params
	}
	media, rest, _ := strings.Cut(field, ";")
	params = map[string]string{}
	for _, found := range parameter.FindAllStringSubmatch(rest, -1) {
		params[strings.ToLower(found[1])] = found[2] + found[3]
	}
	return strings.ToLower(strings.TrimSpace(media)), params
}

var parameter = regexp.MustCompile(`([\w-]+)\s*=\s*(?:"([^"]*)"|([^;\s]+))`)

// fromBase64 decodes Base64, and skips all characters that do not belong to it.
func fromBase64(raw []byte) []byte {
	out := make([]byte, 0, len(raw)/4*3+3)
	for piece := range bytes.SplitSeq(raw, []byte("=")) { // several encoded texts may follow each other
		clean := bytes.Map(func(r rune) rune {
			if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '+' || r == '/') {
				return r
			}
			return -1
		}, piece)
		if len(clean)%4 == 1 {
			clean = clean[:len(clean)-1]
		}
		out, _ = base64.RawStdEncoding.AppendDecode(out, clean) // only unused bits at the end may be wrong
	}
	return out
}

// fromQuotedPrintable decodes quoted-printable. It keeps what is malformed, at which the standard library stops.
func fromQuotedPrintable(raw []byte) []byte {
	return quotedBytes.ReplaceAllFunc(raw, func(run []byte) []byte {
		if b, ok := hexByte(run); ok {
			return []byte{b}
		}
		return nil // a soft line break
	})
}

var quotedBytes = regexp.MustCompile(`=[0-9A-Fa-f]{2}|=[ \t]*(?:\r?\n|$)`)

// hexByte returns the byte that =HH stands for.
func hexByte(run []byte) (b byte, ok bool) {
	if len(run) != 3 {
		return 0, false
	}
	for _, c := range run[1:] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		b = b<<4 | c
	}
	return b, true
}
