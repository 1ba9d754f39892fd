package document

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"
)

// Limits of one message.
const (
	maxMailParts    = 10_000 // in all messages of a file
	maxMailDepth    = 30     // parts within parts
	maxMessageDepth = 5      // messages within messages
)

// mailPart is a message, or a part of one.
type mailPart struct {
	header     mailHeader
	mediaType  string
	params     map[string]string
	name       string // of an attached file; empty if it has none
	isAttached bool   // the sender wants it to be saved, not shown
	raw        []byte // the body as it was sent
}

// newMailPart reads the header of a message or a part. A part without a type has the usual one.
func newMailPart(raw []byte, usual string) mailPart {
	h, body := splitHeader(raw)
	p := mailPart{header: h, raw: body}
	p.mediaType, p.params = mediaTypeOf(cmp.Or(h.first("content-type"), usual))
	if !strings.Contains(p.mediaType, "/") {
		p.mediaType = usual
	}
	disposition, params := mediaTypeOf(h.first("content-disposition"))
	p.isAttached = disposition == "attachment"
	p.name = shown(cmp.Or(params["filename"], p.params["name"]), p.params["charset"])
	return p
}

// content returns the body without its transfer encoding.
func (p mailPart) content() []byte {
	switch strings.ToLower(strings.TrimSpace(p.header.first("content-transfer-encoding"))) {
	case "base64":
		return fromBase64(p.raw)
	case "quoted-printable":
		return fromQuotedPrintable(p.raw)
	}
	return p.raw
}

// text returns the body of a text, decoded.
func (p mailPart) text() string {
	text := decodeBytes(p.content(), cmp.Or(p.params["charset"], DeclaredCharset(p.mediaType, "", p.content())))
	if p.mediaType == "text/plain" && strings.EqualFold(p.params["format"], "flowed") {
		text = unflowed(text, strings.EqualFold(p.params["delsp"], "yes"))
	}
	return text
}

// children returns the parts of a multipart body. The last part may lack its boundary. It returns nil if no boundary is
// found.
func (p mailPart) children() (all [][]byte) {
	boundary := []byte("--" + p.params["boundary"])
	begin := -1
	for at := 0; at < len(p.raw) && len(boundary) > 2; {
		line, after := cutLine(p.raw[at:])
		next := len(p.raw) - len(after)
		if rest, ok := bytes.CutPrefix(line, boundary); ok {
			rest = bytes.TrimRight(rest, " \t")
			if len(rest) == 0 || string(rest) == "--" {
				if begin >= 0 {
					all = append(all, withoutLineEnd(p.raw[begin:at]))
				}
				if begin = next; len(rest) > 0 {
					return all
				}
			}
		}
		at = next
	}
	if begin >= 0 && begin < len(p.raw) {
		all = append(all, p.raw[begin:])
	}
	return all
}

// withoutLineEnd drops the line end before a boundary, which belongs to the boundary.
func withoutLineEnd(raw []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(raw, []byte("\n")), []byte("\r"))
}

// unflowed joins the lines of paragraphs of format=flowed (RFC 3676): a line that ends in a blank goes on in the next
// one with as many quotation marks. If joined is set, that blank is dropped.
func unflowed(text string, joined bool) string {
	var b strings.Builder
	flows, depth := false, 0
	for line := range strings.SplitSeq(text, "\n") {
		quoted := len(line) - len(strings.TrimLeft(line, ">"))
		words := strings.TrimPrefix(line[quoted:], " ")
		if !flows || quoted != depth || words == "-- " {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			if b.WriteString(line[:quoted]); quoted > 0 && words != "" {
				b.WriteByte(' ')
			}
		}
		depth, flows = quoted, strings.HasSuffix(words, " ") && words != "-- "
		if flows && joined {
			words = words[:len(words)-1]
		}
		b.WriteString(words)
	}
	return b.String()
}

// messagesOf splits an mbox file into its messages. A message begins behind an empty line with a line "From …" that a
// header field follows. Lines that were quoted as ">From " are as they were written again.
func messagesOf(raw []byte) (all [][]byte) {
	var message []byte
	empty := true
	for rest := raw; len(rest) > 0; {
		line, after := cutLine(rest)
		whole := rest[:len(rest)-len(after)]
		rest = after
		if empty && bytes.HasPrefix(line, []byte("From ")) && beginsHeader(after) {
			if len(bytes.TrimSpace(message)) > 0 {
				all = append(all, message)
			}
			message, empty = nil, false
			continue
		}
		if unquoted := bytes.TrimLeft(line, ">"); len(unquoted) < len(line) && bytes.HasPrefix(unquoted, []byte("From ")) {
			whole = whole[1:]
		}
		message, empty = append(message, whole...), len(line) == 0
	}
	if len(bytes.TrimSpace(message)) > 0 {
		all = append(all, message)
	}
	return all
}

// beginsHeader reports whether a text begins with a header field. Some programs quote its first lines too.
func beginsHeader(raw []byte) bool {
	line, _ := cutLine(raw)
	return headerField.Match(bytes.TrimLeft(line, ">"))
}

// fromApple returns the message of an .emlx file, which has its size on a line before it and a property list behind it.
func fromApple(raw []byte) []byte {
	line, after := cutLine(raw)
	size, err := strconv.Atoi(string(bytes.TrimSpace(line)))
	if err != nil || size < 0 || size > len(after) {
		return raw
	}
	return after[:size]
}
