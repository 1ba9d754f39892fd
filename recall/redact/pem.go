package redact

import "strings"

// Of a block's body: how many characters it has at least, and how many a line that is told from other text.
const (
	minBody    = 40
	longLine   = 32
	maxGap     = 64 // between two lines, in code
	maxLabel   = 110
	dashes     = "-----"
	keyLabel   = "PRIVATE KEY"
	blockLabel = " BLOCK"
)

// privateKey finds the private key in a block of PEM or PGP whose "-----BEGIN" ends here; next is where to look on. Its lines may be parted
// by escapes, as in JSON. A block that stands as it is, whole or cut off, is one secret; where each of its lines stands by itself, as in
// code or with numbers before them, each is one.
func privateKey(text string, end int) (found []finding, next int) {
	label, _, ok := strings.Cut(text[end:min(len(text), end+maxLabel)], dashes)
	if !ok || !strings.HasSuffix(strings.TrimSuffix(label, blockLabel), keyLabel) {
		return nil, end
	}
	body := end + len(label) + len(dashes)
	stop, ends := len(text), 0 // of the body and of the block
	if i := strings.Index(text[body:], dashes); i >= 0 {
		stop = body + i
		if rest, ok := strings.CutPrefix(text[stop:], dashes+"END"); ok {
			if label, _, ok := strings.Cut(rest[:min(len(rest), maxLabel)], dashes); ok {
				ends = stop + 2*len(dashes) + len("END") + len(label)
			}
		}
	}
	chars, last, all := walkBody(text, body, stop)
	switch {
	case chars < minBody:
		return bodyLines(text, body, stop), stop
	case all:
		last = max(last, ends)
	}
	from := end - len(dashes+"BEGIN")
	return []finding{{from: from, to: last, secret: unescaped.Replace(text[from:last])}}, stop
}

// unescaped makes the same of a block in JSON and of one that is not. Escapes may be escaped in their turn.
var unescaped = strings.NewReplacer(`\\\\r`, "", `\\\\n`, "\n", `\\r`, "", `\\n`, "\n", `\r`, "", `\n`, "\n", "\r", "")

// walkBody goes over lines of base64 and the headers before them: how many characters of long lines there are, where they end, and
// whether that was all there is.
func walkBody(text string, at, stop int) (chars, last int, all bool) {
	before := 0 // size of the line before
	last = at
	for {
		at = skipSpace(text, at, stop)
		if at == stop {
			return chars, last, true
		}
		if n := headerSize(text[at:stop]); n > 0 && chars == 0 {
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

// skipSpace skips spaces and the escapes of JSON for them.
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

// headerSize is how long the header line is that a text begins with, such as "DEK-Info: …".
func headerSize(text string) int {
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

// bodyLines finds the lines of a body that stand near each other.
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
