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

// privateKey finds the private key in a PEM or PGP block whose "-----BEGIN" ends at a position; next is where to
// continue. Escapes of JSON may separate its lines. A contiguous block, whole or cut off, is one secret. Where other
// text separates the lines, as in code or in a listing with line numbers, each line is one.
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

// bodyEnd returns where a block's body ends, and where its END line does, or 0 if it has none.
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

// unescaped removes escapes of line ends, doubled or not, so that a block has one placeholder inside and outside of
// JSON.
var unescaped = strings.NewReplacer(`\\\\r`, "", `\\\\n`, "\n", `\\r`, "", `\\n`, "\n", `\r`, "", `\n`, "\n", "\r", "")

// walkBody walks the headers and base64 lines of text[at:stop]. It returns the characters in long lines, where the last
// line ends, and whether nothing else is there.
func walkBody(text string, at, stop int) (chars, last int, contiguous bool) {
	before := 0 // characters in the previous line
	last = at
	for {
		at = skipSpace(text, at, stop)
		if at == stop {
			return chars, last, true
		}
		if n := headerBytes(text[at:stop]); n > 0 && chars == 0 {
			at += n
			continue
		}
		size := 0
		for at+size < stop && isBase64(text[at+size]) {
			size++
		}
		if size == 0 {
			return chars, last, false
		}
		at += size
		if size >= longLine {
			chars += size
		}
		if size >= longLine || before >= longLine {
			last = at
		}
		before = size
	}
}

// skipSpace returns the position after spaces and their JSON escapes.
func skipSpace(text string, at, stop int) int {
	for at < stop {
		if strings.IndexByte(" \t\r\n", text[at]) >= 0 {
			at++
			continue
		}
		slashes := at
		for slashes < stop && text[slashes] == '\\' {
			slashes++
		}
		if slashes == at || slashes == stop || strings.IndexByte("nrt", text[slashes]) < 0 {
			return at
		}
		at = slashes + 1
	}
	return at
}

// headerBytes returns the length of the header line, such as "DEK-Info: …", that a text starts with, or 0.
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

// bodyLines finds the base64 lines of a body at most maxGap apart.
func bodyLines(text string, at, stop int) (found []finding) {
	for gap := at; at < stop && at-gap <= maxGap; at++ {
		if !isBase64(text[at]) {
			continue
		}
		from := at
		for at < stop && isBase64(text[at]) {
			at++
		}
		if from > 0 && text[from-1] == '\\' {
			from++
		}
		if at-from >= longLine && digits(text[from:at]) > 0 && strings.ToLower(text[from:at]) != text[from:at] {
			found, gap = append(found, finding{from: from, to: at}), at
		}
	}
	return found
}

func isBase64(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '+' || c == '/' || c == '='
}
