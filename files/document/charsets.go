package document

import (
	"bytes"
	"encoding/base64"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/transform"
)

// tableCharset is an encoding of one byte for each character: the characters of the bytes 0 to 255. The libraries of
// encodings lack those that are here.
type tableCharset [256]rune

// upperTable returns an encoding that has ASCII and 128 characters beyond it.
func upperTable(upper string) *tableCharset {
	t := &tableCharset{}
	for i := range 128 {
		t[i] = rune(i)
	}
	copy(t[128:], []rune(upper))
	return t
}

// hostTable returns an encoding of mainframes. Their line ends are NEL.
func hostTable(all string) *tableCharset {
	t := &tableCharset{}
	copy(t[:], []rune(strings.ReplaceAll(all, "\u0085", "\n")))
	return t
}

// hostCharmap returns an encoding of mainframes that a library has.
func hostCharmap(c *charmap.Charmap) *tableCharset {
	all := make([]rune, 256)
	for i := range all {
		all[i] = c.DecodeByte(byte(i))
	}
	return hostTable(string(all))
}

// ownCharsets are the encodings that the libraries lack, by the names that uploaders give.
var ownCharsets = map[string]encoding.Encoding{
	"us-ascii":    upperTable(strings.Repeat("\ufffd", 128)),
	"x-mac-ce":    upperTable(macCE),
	"x-mac-greek": upperTable(macGreek),
	"ibm037":      hostCharmap(charmap.CodePage037),
	"ibm1047":     hostCharmap(charmap.CodePage1047),
	"ibm1140":     hostCharmap(charmap.CodePage1140),
	"ibm273":      hostTable(host273),
	"ibm500":      hostTable(host500),
	"iso-2022-kr": wholeCharset(decodeISO2022KR),
	"utf-7":       wholeCharset(decodeUTF7),
}

// ownLabels maps other names of ownCharsets to theirs.
var ownLabels = map[string]string{"ascii": "us-ascii", "maccentraleurope": "x-mac-ce", "mac-latin2": "x-mac-ce",
	"maclatin2": "x-mac-ce", "mac-ce": "x-mac-ce", "x-mac-centraleurroman": "x-mac-ce", "mac-greek": "x-mac-greek",
	"macgreek": "x-mac-greek", "cp037": "ibm037", "cp273": "ibm273", "cp500": "ibm500", "cp1047": "ibm1047",
	"cp1140": "ibm1140", "ebcdic-cp-us": "ibm037", "iso2022-kr": "iso-2022-kr", "csiso2022kr": "iso-2022-kr",
	"utf7": "utf-7", "hz": "hz-gb-2312", "unicode-1-1-utf-7": "utf-7"}

const (
	macCE = "ÄĀāÉĄÖÜáąČäčĆćéŹźĎíďĒēĖóėôöõúĚěü" +
		"†°Ę£§•¶ß®©™ę¨≠ģĮįĪ≤≥īĶ∂∑łĻļĽľĹĺŅ" +
		"ņŃ¬√ńŇ∆«»…\u00a0ňŐÕőŌ–—“”‘’÷◊ōŔŕŘ‹›řŖ" +
		"ŗŠ‚„šŚśÁŤťÍŽžŪÓÔūŮÚůŰűŲųÝýķŻŁżĢˇ"
	macGreek = "Ä¹²É³ÖÜ΅àâä΄¨çéèêë£™îï•½‰ôö¦€ùûü" +
		"†ΓΔΘΛΞΠß®©ΣΪ§≠°·Α±≤≥¥ΒΕΖΗΙΚΜΦΫΨΩ" +
		"άΝ¬ΟΡ≈Τ«»…\u00a0ΥΧΆΈœ–―“”‘’÷ΉΊΌΎέήίόΏ" +
		"ύαβψδεφγηιξκλμνοπώρστθωςχυζϊϋΐΰ\u00ad"
	host273 = "\u0000\u0001\u0002\u0003\u009c\u0009\u0086\u007f\u0097\u008d\u008e\u000b\u000c\u000d\u000e\u000f" +
		"\u0010\u0011\u0012\u0013\u009d\u0085\u0008\u0087\u0018\u0019\u0092\u008f\u001c\u001d\u001e\u001f" +
		"\u0080\u0081\u0082\u0083\u0084\u000a\u0017\u001b\u0088\u0089\u008a\u008b\u008c\u0005\u0006\u0007" +
		"\u0090\u0091\u0016\u0093\u0094\u0095\u0096\u0004\u0098\u0099\u009a\u009b\u0014\u0015\u009e\u001a" +
		" \u00a0â{àáãåçñÄ.<(+!&éêëèíîïì~Ü$*);^" +
		"-/Â[ÀÁÃÅÇÑö,%_>?øÉÊËÈÍÎÏÌ`:#§'=\"" +
		"Øabcdefghi«»ðýþ±°jklmnopqrªºæ¸Æ¤" +
		"µßstuvwxyz¡¿ÐÝÞ®¢£¥·©@¶¼½¾¬|‾¨´×" +
		"äABCDEFGHI\u00adô¦òóõüJKLMNOPQR¹û}ùúÿ" +
		"Ö÷STUVWXYZ²Ô\\ÒÓÕ0123456789³Û]ÙÚ\u009f"
	host500 = "\u0000\u0001\u0002\u0003\u009c\u0009\u0086\u007f\u0097\u008d\u008e\u000b\u000c\u000d\u000e\u000f" +
		"\u0010\u0011\u0012\u0013\u009d\u0085\u0008\u0087\u0018\u0019\u0092\u008f\u001c\u001d\u001e\u001f" +
		"\u0080\u0081\u0082\u0083\u0084\u000a\u0017\u001b\u0088\u0089\u008a\u008b\u008c\u0005\u0006\u0007" +
		"\u0090\u0091\u0016\u0093\u0094\u0095\u0096\u0004\u0098\u0099\u009a\u009b\u0014\u0015\u009e\u001a" +
		" \u00a0âäàáãåçñ[.<(+!&éêëèíîïìß]$*);^" +
		"-/ÂÄÀÁÃÅÇÑ¦,%_>?øÉÊËÈÍÎÏÌ`:#@'=\"" +
		"Øabcdefghi«»ðýþ±°jklmnopqrªºæ¸Æ¤" +
		"µ~stuvwxyz¡¿ÐÝÞ®¢£¥·©§¶¼½¾¬|¯¨´×" +
		"{ABCDEFGHI\u00adôöòóõ}JKLMNOPQR¹ûüùúÿ" +
		"\\÷STUVWXYZ²ÔÖÒÓÕ0123456789³ÛÜÙÚ\u009f"
)

// NewDecoder is encoding.Encoding's.
func (t *tableCharset) NewDecoder() *encoding.Decoder { return &encoding.Decoder{Transformer: t} }

// NewEncoder is not used: files are only read.
func (t *tableCharset) NewEncoder() *encoding.Encoder { return encoding.Replacement.NewEncoder() }

// Reset is transform.Transformer's.
func (t *tableCharset) Reset() {}

// Transform decodes bytes.
func (t *tableCharset) Transform(dst, src []byte, _ bool) (nDst, nSrc int, err error) {
	for _, b := range src {
		if nDst+utf8.RuneLen(t[b]) > len(dst) {
			return nDst, nSrc, transform.ErrShortDst
		}
		nDst += utf8.EncodeRune(dst[nDst:], t[b])
		nSrc++
	}
	return nDst, nSrc, nil
}

// wholeCharset is an encoding in which a byte means something else behind others. It decodes whole texts.
type wholeCharset func(raw []byte) string

// NewDecoder is encoding.Encoding's.
func (w wholeCharset) NewDecoder() *encoding.Decoder { return &encoding.Decoder{Transformer: w} }

// NewEncoder is not used: files are only read.
func (w wholeCharset) NewEncoder() *encoding.Encoder { return encoding.Replacement.NewEncoder() }

// Reset is transform.Transformer's.
func (w wholeCharset) Reset() {}

// Transform decodes a whole text at once.
func (w wholeCharset) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	if !atEOF {
		return 0, 0, transform.ErrShortSrc
	}
	text := w(src)
	if len(text) > len(dst) {
		return 0, 0, transform.ErrShortDst
	}
	return copy(dst, text), len(src), nil
}

// beginsISO2022KR is the sequence with which a text in ISO-2022-KR begins.
const beginsISO2022KR = "\x1b$)C"

// decodeISO2022KR decodes ISO-2022-KR: SO begins Korean, in seven bits; SI and the end of a line begin ASCII.
func decodeISO2022KR(raw []byte) string {
	raw = bytes.ReplaceAll(raw, []byte(beginsISO2022KR), nil)
	korean8 := make([]byte, 0, len(raw))
	shifted := false
	for _, b := range raw {
		switch {
		case b == 0x0e:
			shifted = true
		case b == 0x0f:
			shifted = false
		case shifted && b >= 0x21 && b <= 0x7e:
			korean8 = append(korean8, b|0x80)
		default:
			shifted = shifted && b != '\n'
			korean8 = append(korean8, b)
		}
	}
	return decoded(korean8, korean.EUCKR)
}

// decodeUTF7 decodes UTF-7: between + and - stands UTF-16 in Base64.
func decodeUTF7(raw []byte) string {
	var b strings.Builder
	rest := string(raw)
	for {
		before, after, found := strings.Cut(rest, "+")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		end := strings.IndexFunc(after, func(r rune) bool { return !isBase64(r) })
		if end < 0 {
			end = len(after)
		}
		packed := after[:end]
		if rest = strings.TrimPrefix(after[end:], "-"); packed == "" {
			b.WriteString("+")
			if len(rest) == len(after) { // it is no shift
				continue
			}
		}
		b.WriteString(fromBase64UTF16(packed))
	}
}

func isBase64(r rune) bool {
	return r == '+' || r == '/' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}

func fromBase64UTF16(packed string) string {
	raw, err := base64.RawStdEncoding.DecodeString(packed)
	if err != nil {
		return "+" + packed
	}
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = uint16(raw[2*i])<<8 | uint16(raw[2*i+1])
	}
	return string(utf16.Decode(units))
}
