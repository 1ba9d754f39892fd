package document

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"strings"
)

// mailReader reads the messages of one file. The header's words, the media types and the quotation of bytes are decoded
// leniently, and parts are split here, because the libraries end at the first malformed line and lose what follows.
type mailReader struct {
	attached func(Input) (Text, error) // reads an attachment
	parts    int
	written  int    // bytes of text
	depth    int    // of messages within messages
	charset  string // of texts that do not say theirs; empty: it is found
	omitted  omissions
}

// readMail returns the text of messages: for each its subject as a heading, its From, To, Cc and Date, its text, and
// the texts of its attachments. What is not read is named.
func readMail(input Input, attached func(Input) (Text, error)) (Text, error) {
	raw, err := input.bytes()
	if err != nil {
		return Text{}, err
	}
	m := &mailReader{attached: attached, charset: input.Charset}
	text, err := m.file(raw, input.MediaType)
	if err != nil {
		return Text{}, err
	}
	if isBlank(text) {
		return Text{}, unreadable("The mail holds no text.")
	}
	return Text{Text: text + "\n", Omitted: m.omitted.list()}, nil
}

// file returns the text of a file of one or more messages.
func (m *mailReader) file(raw []byte, mediaType string) (string, error) {
	raw = bytes.TrimLeft(bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")), "\r\n")
	messages := [][]byte{raw}
	if mediaType == mboxType || bytes.HasPrefix(raw, []byte("From ")) {
		messages = messagesOf(raw)
	}
	var texts []string
	for _, message := range messages {
		text, err := m.message(fromApple(message))
		if err != nil {
			return "", err
		}
		texts = append(texts, text)
	}
	return joinTexts(texts), nil
}

// message returns the text of one message. What has no header of a message is plain text.
func (m *mailReader) message(raw []byte) (string, error) {
	p := m.part(raw, "text/plain")
	if !p.header.isMail() {
		text, _, err := Decode(raw, "")
		return tidied(text), err
	}
	hint := p.params["charset"]
	subject := shown(p.header.first("subject"), hint)
	var fields []string
	for _, name := range []string{"From", "Reply-To", "To", "Cc", "Bcc", "Date"} {
		if value := shown(strings.Join(p.header[strings.ToLower(name)], ", "), hint); value != "" {
			fields = append(fields, name+": "+value)
		}
	}
	if source := p.header.first("snapshot-content-location"); source != "" {
		fields = append(fields, "Location: "+shown(source, hint))
	}
	m.depth++
	body, err := m.body(p, 0)
	m.depth--
	heading := "# " + cmp.Or(subject, "(no subject)")
	if p.header.first("from") == "" && (subject == "" || strings.HasPrefix(body.shown, heading+"\n")) {
		heading = "" // a saved web page has a title
	}
	return joinTexts([]string{heading, strings.Join(fields, "\n"), body.shown, body.attached}), err
}

// part reads the header of a message or a part.
func (m *mailReader) part(raw []byte, usual string) mailPart {
	p := newMailPart(raw, usual)
	if p.params["charset"] == "" && m.charset != "" {
		p.params = maps.Clone(p.params)
		if p.params == nil {
			p.params = map[string]string{}
		}
		p.params["charset"] = m.charset
	}
	return p
}

// joinTexts puts an empty line between texts.
func joinTexts(texts []string) string {
	var all []string
	for _, text := range texts {
		if text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, "\n\n")
}

// mailText is the text of a part: what mail programs show, and what is attached to that.
type mailText struct{ shown, attached string }

// body returns the text of a part and of the parts in it.
func (m *mailReader) body(p mailPart, depth int) (text mailText, err error) {
	if m.parts++; m.parts > maxMailParts {
		return mailText{}, unreadable("The mail has more than %d parts. "+
			"Upload its messages or attachments one by one.", maxMailParts)
	}
	isText := p.mediaType == "text/plain" || p.mediaType == "text/html"
	switch {
	case depth > maxMailDepth:
		text.attached = m.notRead(p, "it is nested too deep")
	case p.mediaType == "multipart/encrypted" || isEncrypted(p):
		text.attached = m.notRead(p, "the message is encrypted")
	case strings.HasPrefix(p.mediaType, "multipart/"):
		return m.multipart(p, depth)
	case isSignature[p.mediaType]:
	case isText && !p.isAttached && (p.name == "" || depth == 0):
		return m.textWithFiles(p)
	case p.mediaType == messageType || p.mediaType == "message/global":
		text.attached, err = m.forwarded(p)
	case strings.HasPrefix(p.mediaType, "message/") || p.mediaType == "text/rfc822-headers":
		text.shown, err = m.keep(tidied(p.text()))
	default:
		text.attached, err = m.attachment(p)
	}
	return text, err
}

// isSignature are the types of signatures, which say nothing to a reader.
var isSignature = setOf("application/pgp-signature application/pkcs7-signature application/x-pkcs7-signature")

// keep counts the bytes of a text.
func (m *mailReader) keep(text string) (string, error) {
	if m.written += len(text); m.written > MaxTextBytes {
		return "", tooMuchText()
	}
	return text, nil
}

// shownText returns the text of a part that mail programs show.
func (m *mailReader) shownText(p mailPart) (string, error) {
	text := p.text()
	if p.mediaType == "text/html" {
		markdown, err := readHTML(text, &m.omitted)
		if err != nil {
			return "", err
		}
		text = markdown
	}
	return m.keep(tidied(text))
}

// tidied returns a text with clean line ends, without blanks around lines and without empty lines at its ends.
func tidied(text string) string { return tidyMarkdown(visible(cleanText(text))) }

// multipart returns the text of the parts of a body. If no part is found, the body is text.
func (m *mailReader) multipart(p mailPart, depth int) (mailText, error) {
	usual := "text/plain"
	if p.mediaType == "multipart/digest" {
		usual = messageType
	}
	raw := p.children()
	if len(raw) == 0 {
		p.mediaType = "text/plain"
		text, err := m.shownText(p)
		return mailText{shown: text}, err
	}
	var shown, attached []string
	var parts []mailPart
	for _, raw := range raw {
		part := m.part(raw, usual)
		if p.mediaType == webPageType && isStyling(part) {
			continue
		}
		text, err := m.body(part, depth+1)
		if err != nil {
			return mailText{}, err
		}
		parts, shown, attached = append(parts, part), append(shown, text.shown), append(attached, text.attached)
	}
	if p.mediaType == "multipart/alternative" {
		shown = []string{bestVersion(parts, shown)}
	}
	return mailText{joinTexts(shown), joinTexts(attached)}, nil
}

// isStyling reports whether a part of a web page says nothing to a reader.
func isStyling(p mailPart) bool {
	return p.mediaType == "text/css" || strings.HasPrefix(p.mediaType, "font/") ||
		strings.Contains(p.mediaType, "font") || strings.Contains(p.mediaType, "javascript")
}

// forwarded returns the text of a message within a message.
func (m *mailReader) forwarded(p mailPart) (string, error) {
	if m.depth >= maxMessageDepth {
		return m.notRead(p, "it is nested too deep"), nil
	}
	text, err := m.message(p.content())
	return joinTexts([]string{attachmentHeading("Attached message", p.name), lowered(text)}), err
}

// lowered returns Markdown with each heading one level lower, outside code blocks.
func lowered(text string) string {
	var b strings.Builder
	fence := ""
	for line := range strings.Lines(text) {
		if mark := fenceMark(line); mark != "" && fence == "" {
			fence = mark
		} else if fence != "" && strings.HasPrefix(mark, fence) {
			fence = ""
		}
		if fence == "" && upperHeading.MatchString(line) {
			line = "#" + line
		}
		b.WriteString(line)
	}
	return b.String()
}

var upperHeading = regexp.MustCompile(`^#{1,5} `)

func attachmentHeading(what, name string) string {
	if name == "" {
		return "## " + what
	}
	return "## " + what + ": " + name
}

// attachment returns the text of an attached file below its name, or names the file if it is not read.
func (m *mailReader) attachment(p mailPart) (string, error) {
	body := p.content()
	name := path.Base(strings.ReplaceAll(cmp.Or(p.name, "part"), `\`, "/"))
	kind, err := Sniff(name, p.mediaType, bytes.NewReader(body), int64(len(body)))
	if unsupported, ok := errors.AsType[*UnsupportedError](err); ok {
		return m.notRead(p, cmp.Or(strings.TrimSuffix(unsupported.Advice, "."), "files of this type are not read")), nil
	}
	text := Text{}
	if err == nil {
		text, err = m.attachedText(body, kind)
	}
	if refused, ok := errors.AsType[*UnreadableError](err); ok {
		return m.notRead(p, strings.TrimSuffix(refused.Reason, ".")), nil
	}
	if err != nil {
		return "", err
	}
	for _, o := range text.Omitted {
		m.omitted.addAt(o.Kind, named("attachment", strings.TrimSuffix(p.name+", "+o.Where, ", ")), o.Count)
	}
	kept, err := m.keep(tidied(text.Text))
	if kept == "" {
		return "", err
	}
	return joinTexts([]string{attachmentHeading("Attachment", p.name), lowered(kept)}), err
}

// attachedText reads an attached file.
func (m *mailReader) attachedText(body []byte, media string) (Text, error) {
	input := Input{MediaType: media, SizeBytes: int64(len(body)), Body: bytes.NewReader(body)}
	if !isMail[media] {
		return m.attached(input)
	}
	if m.depth >= maxMessageDepth {
		return Text{}, unreadable("It is nested too deep.")
	}
	text, err := m.file(body, media)
	return Text{Text: text}, err
}

// isEncrypted reports whether a part is a message in S/MIME, encrypted or packed with its signature.
func isEncrypted(p mailPart) bool {
	return p.mediaType == "application/pkcs7-mime" || p.mediaType == "application/x-pkcs7-mime"
}

// notRead names a part that is not read. A picture that a text shows in its place is only counted.
func (m *mailReader) notRead(p mailPart, why string) string {
	kind, at := attachment, place{}
	switch {
	case strings.HasPrefix(p.mediaType, "image/"):
		kind = picture
	case strings.HasPrefix(p.mediaType, "audio/"), strings.HasPrefix(p.mediaType, "video/"):
		kind = media
	case p.mediaType == "multipart/encrypted" || isEncrypted(p):
		kind = "encrypted message"
	}
	if p.name != "" {
		at = named("attachment", p.name)
	}
	m.omitted.addAt(kind, at, 1)
	if kind == picture && !p.isAttached {
		return ""
	}
	return fmt.Sprintf("[Not read: %s (%s), %d bytes: %s]", cmp.Or(p.name, "part without a name"), p.mediaType,
		len(p.content()), why)
}
