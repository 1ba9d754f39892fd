package redact

import "strings"

const (
	minBody    = 40 // base64 characters in a key's body
	longLine   = 32 // base64 characters in a line that is not prose
	maxGap     = 64 // bytes between two lines of a key in code
	maxLabel   = 110
	dashes     = "-----"
	keyLabel   = "PRIVATE KEY"
	blockLabel = " BLOCK"
)

// privateKey finds the private key in a PEM or PGP block; end is where the block's "-----BEGIN" ends, and next is where
// to continue. JSON escapes may separate the key's lines. A contiguous block, whole or cut off, is one secret. If other
// text separates the lines, as in code or in a listing with line numbers, each line is a secret of its own.
func privateKey(text string, end int) (found []finding, next int) {
	label, _, ok := strings.Cut(text[end:min(len(text), end+maxLabel)], dashes)
	if !ok || !strings.HasSuffix(strings.TrimSuffix(label, blockLabel), keyLabel) {
		return nil, end
	}
	body := end + len(label) + len(dashes)
	stop, blockEnd := bodyEnd(text, body)
	chars, last, contiguous := walkBody(text, body, stop)
	if chars < minBody {
		return bodyLines(text, body, stop), stop
	}
	if contiguous {
		last = max(last, blockEnd)
	}
	from := end - len(dashes+"BEGIN")
	return []finding{{from: from, to: last, secret: unescaped.Replace(text[from:last])}}, stop
}

// bodyEnd returns where a block's body ends, and where its END line ends; 0 if it has no END line.
func bodyEnd(text string, body int) (stop, blockEnd int) {
	i := strings.Index(text[body:], dashes)
	if i < 0 {
		return len(text), 0
	}
	stop = body + i
	if rest, ok := strings.CutPrefix(text[stop:], dashes+"END"); ok {
		if label, _, ok := strings.Cut(rest[:min(len(rest), maxLabel)], dashes); ok {
			blockEnd = stop + 2*len(dashes) + len("END") + len(label)
		}
	}
	return stop, blockEnd
}

// unescaped removes escapes of line ends, also doubled ones, so that a block has the same placeholder inside and
// outside of JSON.
var unescaped = strings.NewReplacer(`\\\\r`, "", `\\\\n`, "\n", `\\r`, "", `\\n`, "\n", `\r`, "", `\n`, "\n", "\r", "")

// walkBody walks over headers and base64 lines in text[pos:stop]. It returns the number of characters in long lines,
// the offset where the last line ends, and whether it found nothing else.
func walkBody(text string, pos, stop int) (chars, last int, contiguous bool) {
	before := 0 // characters in the previous line
	last = pos
	for {
		pos = skipSpace(text, pos, stop)
		if pos == stop {
			return chars, last, true
		}
		if n := headerBytes(text[pos:stop]); n > 0 && chars == 0 {
			pos += n
			continue
		}
		size := 0
		for pos+size < stop && isBase64(text[pos+size]) {
			size++
		}
		if size == 0 {
			return chars, last, false
		}
		pos += size
		if size >= longLine {
			chars += size
		}
		if size >= longLine || before >= longLine {
			last = pos
		}
		before = size
	}
}

// skipSpace returns the position behind spaces and JSON escapes of spaces.
func skipSpace(text string, pos, stop int) int {
	for pos < stop {
		if strings.IndexByte(" \t\r\n", text[pos]) >= 0 {
			pos++
			continue
		}
		slashes := pos
		for slashes < stop && text[slashes] == '\\' {
			slashes++
		}
		if slashes == pos || slashes == stop || strings.IndexByte("nrt", text[slashes]) < 0 {
			return pos
		}
		pos = slashes + 1
	}
	return pos
}

// headerBytes returns the length of a header line, such as "DEK-Info: …", at the start of a text; 0 if there is none.
func headerBytes(text string) int {
	line := text[:min(len(text), maxLabel)]
	if i := strings.IndexAny(line, "\n\\\""); i >= 0 {
		line = line[:i]
	}
	name, _, ok := strings.Cut(line, ": ")
	if !ok || name == "" || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-") != "" {
		return 0
	}
	return len(line)
}

// bodyLines finds base64 lines of a body that stand at most maxGap apart.
func bodyLines(text string, pos, stop int) (found []finding) {
	for gap := pos; pos < stop && pos-gap <= maxGap; pos++ {
		if !isBase64(text[pos]) {
			continue
		}
		from := pos
		for pos < stop && isBase64(text[pos]) {
			pos++
		}
		if from > 0 && text[from-1] == '\\' {
			from++
		}
		if pos-from >= longLine && digits(text[from:pos]) > 0 && strings.ToLower(text[from:pos]) != text[from:pos] {
			found, gap = append(found, finding{from: from, to: pos}), pos
		}
	}
	return found
}

func isBase64(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '+' || c == '/' || c == '='
}
