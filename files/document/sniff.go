package document

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime"
	"path"
	"slices"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

// UnsupportedError says that files of this type are not read. MediaType is empty if the type is not known. Advice is a
// sentence, or empty. IfText says what the uploader may do if the file is text all the same, or is empty.
type UnsupportedError struct{ MediaType, Name, Advice, IfText string }

func (e *UnsupportedError) Error() string {
	advice := cmp.Or(e.Advice, e.IfText)
	if advice != "" {
		advice += " "
	}
	return fmt.Sprintf("Unsupported file type: %s (filename: %s). %sSupported types: PDF; Word, PowerPoint and Excel "+
		"(.docx, .pptx, .xlsx); OpenDocument (.odt, .odp, .ods); EPUB; mail (.eml, .mbox, .mht); Jupyter notebooks; text "+
		"in any encoding and with any extension: plain text, Markdown, HTML, source code, JSON, JSONL, CSV, TSV, "+
		"YAML, TOML, XML, logs.",
		cmp.Or(e.MediaType, "unknown"), e.Name, advice)
}

// Sniff returns the media type of an upload. It reads the beginning of the file, and the entries of a zip file. The
// bytes decide whether it is a document. Text other than RTF is accepted with any extension; its media type comes from
// its name, else from its content, else from the declared type. A few control characters, such as colors in a log, do
// not make a text binary (Decode says how many may be there). An empty file is text. For anything else Sniff returns
// *UnsupportedError.
func Sniff(name, declared string, body io.ReaderAt, size int64) (mediaType string, err error) {
	return Accepted{}.Sniff(name, declared, body, size)
}

// Sniff is the function Sniff, and accepts what programs of the operator read.
func (a Accepted) Sniff(name, declared string, body io.ReaderAt, size int64) (mediaType string, err error) {
	head := make([]byte, sniffBytes)
	n, err := body.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the upload: %w", err)
	}
	head = head[:n]
	if extension := strings.ToLower(path.Ext(name)); n == 0 && (isPacked[extension] || extension == ".pdf") {
		return "", &UnsupportedError{Name: name, Advice: "The file is empty. Save the document again, and upload it."}
	}
	found := mimetype.Detect(head)
	content := bareType(found.String())
	isText := n == 0 || looksLikeText(head, isBinary(found))
	if !isText && !isBinary(found) && bytes.Contains(head, manyNULs) {
		isText = looksLikeText(withoutNULs(body, size), false)
	}
	extension := strings.ToLower(path.Ext(name))
	if media, ok := documentType(extension, content, head, isText); ok {
		if said := adviceInArchive(media, body, size); said != "" {
			return "", &UnsupportedError{Name: name, Advice: said}
		}
		return media, nil
	}
	declared = bareType(declared)
	isNamedRTF := extension == ".rtf" || declared == rtfType || declared == "application/rtf"
	if startsWith(head, `{\rtf`) || isText && isNamedRTF {
		return a.program(Input{MediaType: rtfType}, name)
	}
	if isText {
		if bytes.HasPrefix(head, []byte("From ")) && beginsMail(head) {
			content = mboxType
		}
		return textType(name, content, declared), nil
	}
	if media := typesByExt[strings.TrimPrefix(extension, ".")]; isMail[media] && beginsMail(head) {
		return media, nil // its attachments may be sent as they are
	}
	if media, ok := packedType(body, size); ok {
		return media, nil
	}
	for _, in := range []Input{{MediaType: content}, {MediaType: oldType(body, size)}} {
		if refusalOf(in) != nil {
			return a.program(in, name)
		}
	}
	if content == "application/octet-stream" {
		content = ""
	}
	refused := &UnsupportedError{MediaType: content, Name: name, Advice: advice(extension, content, body, size)}
	if content == "" || content == "text/plain" {
		refused.IfText = adviceForText(head)
	}
	return "", refused
}

// adviceForText says what to do with a file that may be text, though it does not look like it.
func adviceForText(head []byte) string {
	nuls, controls := 0, 0
	for _, b := range head {
		switch {
		case b == 0:
			nuls++
		case b < ' ' && b != '\t' && b != '\n' && b != '\r' && b != '\f' && b != 0x1b || b == 0x7f:
			controls++
		}
	}
	switch {
	case isEBCDIC(head):
		return hostAdvice
	case controls*10 > len(head):
		return ""
	case nuls*20 > len(head):
		return fmt.Sprintf("%d of its first %d bytes are NUL, as in binary files. If it is text, remove them, or upload it "+
			"with encoding=utf-8 (or the encoding that it has).", nuls, len(head))
	}
	return "If it is text, name its encoding: upload it with encoding=windows-1252, for instance."
}

// program returns the media type of a file that only programs of the operator read, if they do.
func (a Accepted) program(in Input, name string) (mediaType string, err error) {
	isPicture := in.PictureExtension() != ""
	if isPicture && a.Pictures || !isPicture && a.OldFormats {
		return in.MediaType, nil
	}
	return "", &UnsupportedError{MediaType: in.MediaType, Name: name, Advice: refusalOf(in).Error()}
}

// manyNULs are NULs of which no text has as many in a row, but for a file that was being written when the power failed.
var manyNULs = make([]byte, 64)

// withoutNULs returns the beginning of a file without its blocks of many NULs.
func withoutNULs(body io.ReaderAt, size int64) (head []byte) {
	in := bufio.NewReaderSize(io.NewSectionReader(body, 0, size), 64<<10)
	for nuls := 0; len(head) < sniffBytes; {
		b, err := in.ReadByte()
		if err != nil {
			break // what was read decides
		}
		if nuls++; b != 0 {
			nuls = 0
		}
		if nuls < len(manyNULs) {
			head = append(head, b)
		} else if nuls == len(manyNULs) {
			head = head[:len(head)-nuls+1]
		}
	}
	return head
}

// documentType returns the media type of a document according to its beginning. Text that only mentions PDF is not a
// PDF.
func documentType(extension, content string, head []byte, isText bool) (string, bool) {
	switch {
	case content == pdfType:
		return pdfType, startsWith(head, "%PDF-") || !isText || extension == ".pdf"
	case isText && extension == ".ipynb" && startsWith(jsonInUTF8(head), "{"):
		content = notebookType
	case content == oleType || content == rtfType: // their readers only return why they are not read
		return "", false
	}
	_, ok := Office(content)
	return content, ok
}

// beforeText are characters that may come before a format's mark.
const beforeText = "\ufeff\t\n\f\r "

// startsWith reports whether a file begins with a format's mark, possibly after blanks or a byte order mark.
func startsWith(head []byte, mark string) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, beforeText), []byte(mark))
}

// packedType returns the media type of a document that is a zip file. It looks at the entries, which may be in any
// order.
func packedType(body io.ReaderAt, size int64) (string, bool) {
	a, err := openArchive(body, size)
	if err != nil {
		return "", false
	}
	if a.has("mimetype") {
		declared, err := a.readAll("mimetype")
		media := strings.TrimSpace(string(declared))
		_, ok := Office(media)
		return media, err == nil && ok
	}
	if !a.has("[Content_Types].xml") || a.has("xl/workbook.bin") {
		return "", false
	}
	for _, known := range typesByFolder {
		inFolder := func(name string) bool { return strings.HasPrefix(name, known.folder) }
		if slices.ContainsFunc(a.names, inFolder) {
			return known.media, true
		}
	}
	return "", false
}

// typesByFolder maps the folder of a document's parts to an Office media type.
var typesByFolder = []struct{ folder, media string }{
	{"word/", ooxml + "wordprocessingml.document"},
	{"ppt/", ooxml + "presentationml.presentation"},
	{"xl/", ooxml + "spreadsheetml.sheet"},
}

// isBinary reports whether the content begins with the mark of a format that is not text. Marks may be short ("BM" is a
// bitmap), so they count only if the content is not plainly text.
func isBinary(found *mimetype.MIME) bool {
	for m := found; m != nil; m = m.Parent() {
		if m.Is("text/plain") {
			return false
		}
	}
	return !found.Is("application/octet-stream")
}

// beginsMail reports whether a file begins with a message, or with the line of a mailbox before one.
func beginsMail(head []byte) bool {
	if bytes.HasPrefix(head, []byte("From ")) {
		_, head = cutLine(head)
		return beginsHeader(head)
	}
	h, _ := splitHeader(fromApple(head))
	return h.isMail()
}

// looksLikeText reports whether the beginning of a file is text in some encoding.
func looksLikeText(head []byte, marked bool) bool {
	if len(head) == sniffBytes { // the file is longer than head
		head = trimCutRune(head)
	}
	text, _, ok := decodeUnicode(head)
	if !ok && !marked {
		guess := guessCharset(legacySample(head))
		if guess.isNoise {
			return false
		}
		text = decoded(head, guess.encoding)
	}
	bad := badIn(head, text, ok)
	return bad == 0 && ok || !marked && tolerable(bad, text)
}

// textType returns the media type of a text: by its name, else by its content, else as declared.
func textType(name, content, declared string) string {
	base := strings.ToLower(path.Base(name))
	if known := cmp.Or(typesByName[base], typesByExt[strings.TrimPrefix(path.Ext(base), ".")]); known != "" {
		return known
	}
	for _, media := range []string{content, declared} {
		if media != "text/plain" && (strings.HasPrefix(media, "text/") || isTextType[media] || isMail[media]) {
			return media
		}
	}
	return "text/plain"
}

// TextType returns the media type of a file that is known to be a plain text, by its name, else as declared.
func TextType(name, declared string) string { return textType(name, "text/plain", bareType(declared)) }

// IsKnown reports whether Sniff itself may return a media type. Other media types are those that uploads of text
// declared.
func IsKnown(mediaType string) bool {
	return !strings.HasPrefix(mediaType, "text/") || isNamedType[mediaType] || mimetype.Lookup(mediaType) != nil
}

// bareType returns a media type without parameters, or "" if it is malformed.
func bareType(mediaType string) string {
	bare, _, err := mime.ParseMediaType(mediaType)
	if err != nil {
		return ""
	}
	return bare
}

var isTextType = setOf(`application/json application/jsonl application/x-ndjson application/geo+json application/xml
	application/xhtml+xml application/rss+xml application/atom+xml application/toml application/yaml
	application/javascript application/sql image/svg+xml`)

// typesOf returns name → media type for a list such as "text/x-c c h; text/x-go go".
func typesOf(list string) map[string]string {
	types := map[string]string{}
	for line := range strings.SplitSeq(list, ";") {
		words := strings.Fields(line)
		for _, name := range words[1:] {
			types[name] = words[0]
		}
	}
	return types
}

var typesByName = typesOf(`text/x-dockerfile dockerfile containerfile; text/x-makefile makefile gnumakefile; 
	text/x-cmake cmakelists.txt; text/x-go.mod go.mod; text/plain go.sum; text/x-groovy jenkinsfile;
	text/x-ruby gemfile rakefile`)

// typesByExt maps extensions to media types, with Letta's names for the types that Letta knows.
var typesByExt = typesOf(`text/plain txt text log; text/x-rst rst; text/x-asciidoc adoc; text/x-org org; text/x-tex tex;
	text/markdown md markdown mdx; text/html html htm; application/xhtml+xml xhtml; application/json json ipynb;
	application/jsonl jsonl ndjson; text/csv csv; text/tab-separated-values tsv; application/xml xml xsd;
	image/svg+xml svg; text/x-yaml yaml yml; application/toml toml; text/x-ini ini; text/x-conf cfg conf env properties;
	text/css css; text/x-scss scss; text/x-sass sass; text/x-less less; text/x-python py pyi; text/javascript js mjs cjs;
	text/x-typescript ts; text/x-jsx jsx; text/x-tsx tsx; text/x-vue vue; text/x-svelte svelte; text/x-java-source java;
	text/x-kotlin kt kts; text/x-scala scala; text/x-groovy groovy; text/x-c c h; text/x-c++ cc cpp cxx hpp hh;
	text/x-csharp cs; text/x-fsharp fs; text/x-go go; text/x-rust rs; text/x-swift swift; text/x-objective-c m mm;
	text/x-php php; text/x-ruby rb; text/x-perl pl pm; text/x-lua lua; text/x-r r; text/x-julia jl; text/x-haskell hs;
	text/x-ocaml ml; text/x-elixir ex exs; text/x-erlang erl; text/x-clojure clj; text/x-dart dart; text/x-zig zig;
	text/x-shellscript sh bash zsh fish; text/x-powershell ps1; text/x-batch bat cmd; text/x-dockerfile dockerfile;
	text/x-sql sql; text/x-protobuf proto; text/x-graphql graphql; text/x-terraform tf; text/x-diff diff patch;
	text/vtt vtt; text/x-srt srt; message/rfc822 eml emlx;
	application/mbox mbox; multipart/related mht mhtml; text/calendar ics; text/vcard vcf`)

// isNamedType are the media types in typesByName and typesByExt.
var isNamedType = func() map[string]bool {
	types := map[string]bool{}
	for _, byName := range []map[string]string{typesByName, typesByExt} {
		for _, mediaType := range byName {
			types[mediaType] = true
		}
	}
	return types
}()
