package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"path"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

// sniffBytes is how much of a file's beginning tells its kind.
const sniffBytes = 4096

// UnsupportedError says that an upload is of a kind that is not read. MediaType is empty where the kind is not known; Advice is a
// sentence, or empty.
type UnsupportedError struct{ MediaType, Name, Advice string }

func (e *UnsupportedError) Error() string {
	kind, advice := e.MediaType, e.Advice
	if kind == "" {
		kind = "unknown"
	}
	if advice != "" {
		advice += " "
	}
	return fmt.Sprintf("Unsupported file type: %s (filename: %s). %sSupported types: PDF; Word, PowerPoint and Excel (.docx, .pptx, .xlsx); "+
		"OpenDocument (.odt, .odp, .ods); EPUB; Jupyter notebooks; text in any encoding and with any extension: plain text, "+
		"Markdown, HTML, source code, JSON, JSONL, CSV, TSV, YAML, TOML, XML, logs.", kind, e.Name, advice)
}

// Sniff decides from an upload's bytes what it is: by its beginning, and a zip file by its entries. A document of a format that has a
// reader is what its bytes say. What is text by its content is accepted whatever its extension; its media type is told by the name, then
// by the content, then by the declared type, which is only a hint. A few control characters do not make a text binary: colours in a log,
// form feeds, a NUL after a crash (see Decode for how many). An empty file is text. Everything else is an *UnsupportedError.
func Sniff(name, declared string, body io.ReaderAt, size int64) (mediaType string, err error) {
	head := make([]byte, sniffBytes)
	n, err := body.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the upload: %w", err)
	}
	head = head[:n]
	found := mimetype.Detect(head)
	content := bareType(found.String())
	isText := n == 0 || looksLikeText(head, isBinary(found))
	if media, ok := documentType(name, content, head, isText); ok {
		return media, nil
	}
	if startsWith(head, `{\rtf`) || isText && isNamedRTF(name, bareType(declared)) {
		return "", &UnsupportedError{rtfType, name, errRTF.Reason}
	}
	if isText {
		return textType(name, content, bareType(declared)), nil
	}
	if media, ok := packedType(body, size); ok {
		return media, nil
	}
	if content == "application/octet-stream" {
		content = ""
	}
	return "", &UnsupportedError{content, name, advice(name, content, body, size)}
}

// documentType tells the documents that their beginning shows. A text may speak of PDF, and then is none.
func documentType(name, content string, head []byte, isText bool) (string, bool) {
	switch {
	case content == pdfType:
		return pdfType, startsWith(head, "%PDF-") || !isText || strings.EqualFold(path.Ext(name), ".pdf")
	case isText && strings.EqualFold(path.Ext(name), ".ipynb") && startsWith(head, "{"):
		content = notebookType
	case content == oleType || content == rtfType: // their readers only return why they are not read
		return "", false
	}
	_, ok := Office(content)
	return content, ok
}

// isNamedRTF reports whether a file is RTF by its extension or its declared media type.
func isNamedRTF(name, declared string) bool {
	return strings.EqualFold(path.Ext(name), ".rtf") || declared == rtfType || declared == "application/rtf"
}

const (
	beforeText   = "\ufeff\t\n\f\r " // may stand before the mark of a format
	notebookType = "application/x-ipynb+json"
	oleType      = "application/x-ole-storage"
	rtfType      = "text/rtf"
)

// startsWith reports whether a file begins with a format's mark, after blanks or a byte order mark.
func startsWith(head []byte, mark string) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, beforeText), []byte(mark))
}

// packedType tells the documents that are zip files by their entries, which may come in any order.
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
	if !a.has("[Content_Types].xml") {
		return "", false
	}
	for _, known := range typesByFolder {
		if _, ok := Office(known.media); ok && a.hasFolder(known.folder) {
			return known.media, true
		}
	}
	return "", false
}

func (a *archive) hasFolder(folder string) bool {
	for name := range a.entries {
		if strings.HasPrefix(name, folder) {
			return true
		}
	}
	return false
}

// typesByFolder tells the documents of Office by where their parts are.
var typesByFolder = []struct{ folder, media string }{
	{"word/", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
	{"ppt/", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
	{"xl/", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
}

// advice is what to do with a file of a kind that is not read; empty if nothing is known to help.
func advice(name, content string, body io.ReaderAt, size int64) string {
	if isArchive[content] && isPacked[strings.ToLower(path.Ext(name))] {
		return "By its name it is a document, but it is damaged or something else: open it in the program that made it, and save it again."
	}
	if isArchive[content] {
		return "Archives are not unpacked: upload the files in them."
	}
	if old, ok := errors.AsType[*UnreadableError](refuseOLE(body, size)); ok {
		return old.Reason
	}
	return ""
}

// isPacked are the extensions of documents that are zip files.
var isPacked = map[string]bool{".docx": true, ".pptx": true, ".xlsx": true, ".odt": true, ".odp": true, ".ods": true, ".epub": true}

var isArchive = map[string]bool{
	"application/zip": true, "application/java-archive": true, "application/vnd.android.package-archive": true,
	"application/gzip": true, "application/x-tar": true, "application/x-bzip2": true, "application/x-xz": true, "application/zstd": true,
	"application/lzip": true, "application/x-7z-compressed": true, "application/vnd.rar": true, "application/x-archive": true,
	"application/x-cpio": true, "application/vnd.debian.binary-package": true, "application/x-rpm": true,
}

// isBinary tells whether the content carries the mark of a format that is not text. The marks are short ("BM" is a bitmap), so they
// count only where the content is not plainly text.
func isBinary(found *mimetype.MIME) bool {
	for m := found; m != nil; m = m.Parent() {
		if m.Is("text/plain") {
			return false
		}
	}
	return !found.Is("application/octet-stream")
}

// looksLikeText tells whether the beginning of a file is text in some encoding.
func looksLikeText(head []byte, marked bool) bool {
	text, _, ok := decodeUnicode(trimCutRune(head))
	if !ok && !marked {
		text, _ = decodeLegacy(head, "")
	}
	bad := badRunes(text)
	return bad == 0 && ok || !marked && tolerable(bad, text)
}

// textType is the media type of a text: by its name, else by its content, else as declared.
func textType(name, content, declared string) string {
	base := strings.ToLower(path.Base(name))
	if known, ok := typesByName[base]; ok {
		return known
	}
	if known, ok := typesByExt[strings.TrimPrefix(path.Ext(base), ".")]; ok {
		return known
	}
	if content != "text/plain" && (strings.HasPrefix(content, "text/") || isTextType[content]) {
		return content
	}
	if strings.HasPrefix(declared, "text/") || isTextType[declared] {
		return declared
	}
	return "text/plain"
}

// bareType is a media type without its parameters, empty if it is none.
func bareType(mediaType string) string {
	bare, _, err := mime.ParseMediaType(mediaType)
	if err != nil {
		return ""
	}
	return bare
}

var isTextType = map[string]bool{
	"application/json": true, "application/jsonl": true, "application/x-ndjson": true, "application/geo+json": true,
	"application/xml": true, "application/xhtml+xml": true, "application/rss+xml": true, "application/atom+xml": true,
	"application/toml": true, "application/yaml": true, "application/javascript": true, "application/sql": true, "image/svg+xml": true,
}

var typesByName = map[string]string{
	"dockerfile": "text/x-dockerfile", "containerfile": "text/x-dockerfile", "makefile": "text/x-makefile",
	"gnumakefile": "text/x-makefile", "cmakelists.txt": "text/x-cmake", "go.mod": "text/x-go.mod", "go.sum": "text/plain",
	"jenkinsfile": "text/x-groovy", "gemfile": "text/x-ruby", "rakefile": "text/x-ruby",
}

// typesByExt are Letta's names for the types it knows.
var typesByExt = map[string]string{
	"txt": "text/plain", "text": "text/plain", "log": "text/plain", "rst": "text/x-rst", "adoc": "text/x-asciidoc", "org": "text/x-org",
	"tex": "text/x-tex", "md": "text/markdown", "markdown": "text/markdown", "mdx": "text/markdown", "html": "text/html",
	"htm": "text/html", "xhtml": "application/xhtml+xml", "json": "application/json", "jsonl": "application/jsonl",
	"ndjson": "application/jsonl", "ipynb": "application/json", "csv": "text/csv", "tsv": "text/tab-separated-values",
	"xml": "application/xml", "xsd": "application/xml", "svg": "image/svg+xml", "yaml": "text/x-yaml", "yml": "text/x-yaml",
	"toml": "application/toml", "ini": "text/x-ini", "cfg": "text/x-conf", "conf": "text/x-conf", "env": "text/x-conf",
	"properties": "text/x-conf", "css": "text/css", "scss": "text/x-scss", "sass": "text/x-sass", "less": "text/x-less",
	"py": "text/x-python", "pyi": "text/x-python", "js": "text/javascript", "mjs": "text/javascript", "cjs": "text/javascript",
	"ts": "text/x-typescript", "jsx": "text/x-jsx", "tsx": "text/x-tsx", "vue": "text/x-vue", "svelte": "text/x-svelte",
	"java": "text/x-java-source", "kt": "text/x-kotlin", "kts": "text/x-kotlin", "scala": "text/x-scala", "groovy": "text/x-groovy",
	"c": "text/x-c", "h": "text/x-c", "cc": "text/x-c++", "cpp": "text/x-c++", "cxx": "text/x-c++", "hpp": "text/x-c++",
	"hh": "text/x-c++", "cs": "text/x-csharp", "fs": "text/x-fsharp", "go": "text/x-go", "rs": "text/x-rust", "swift": "text/x-swift",
	"m": "text/x-objective-c", "mm": "text/x-objective-c", "php": "text/x-php", "rb": "text/x-ruby", "pl": "text/x-perl",
	"pm": "text/x-perl", "lua": "text/x-lua", "r": "text/x-r", "jl": "text/x-julia", "hs": "text/x-haskell", "ml": "text/x-ocaml",
	"ex": "text/x-elixir", "exs": "text/x-elixir", "erl": "text/x-erlang", "clj": "text/x-clojure", "dart": "text/x-dart",
	"zig": "text/x-zig", "sh": "text/x-shellscript", "bash": "text/x-shellscript", "zsh": "text/x-shellscript",
	"fish": "text/x-shellscript", "ps1": "text/x-powershell", "bat": "text/x-batch", "cmd": "text/x-batch",
	"dockerfile": "text/x-dockerfile", "sql": "text/x-sql", "proto": "text/x-protobuf", "graphql": "text/x-graphql",
	"tf": "text/x-terraform", "diff": "text/x-diff", "patch": "text/x-diff", "vtt": "text/vtt", "srt": "text/x-srt",
	"eml": "message/rfc822", "ics": "text/calendar", "vcf": "text/vcard",
}
