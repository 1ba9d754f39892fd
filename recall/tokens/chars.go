package tokens

import (
	"encoding/binary"
	"unicode/utf8"
)

// highBits are the bits that only bytes beyond ASCII have set.
const highBits = 0x8080808080808080

// Chars returns a text's number of characters, like utf8.RuneCountInString, but takes an eighth of the time for text
// that is mostly ASCII.
func Chars(text string) (n int) {
	for len(text) > 0 {
		ascii := ASCIIPrefix(text)
		n += ascii
		text = text[ascii:]
		for len(text) > 0 && text[0] >= utf8.RuneSelf {
			_, size := utf8.DecodeRuneInString(text)
			text = text[size:]
			n++
		}
	}
	return n
}

// ASCIIPrefix returns the length of the ASCII characters at the start of a text.
func ASCIIPrefix(text string) int {
	i := 0
	for ; i+8 <= len(text); i += 8 {
		if word(text[i:])&highBits != 0 {
			break
		}
	}
	for i < len(text) && text[i] < utf8.RuneSelf {
		i++
	}
	return i
}

// ASCIISuffix returns the length of the ASCII characters at the end of a text.
func ASCIISuffix(text string) int {
	i := len(text)
	for ; i >= 8; i -= 8 {
		if word(text[i-8:])&highBits != 0 {
			break
		}
	}
	for i > 0 && text[i-1] < utf8.RuneSelf {
		i--
	}
	return len(text) - i
}

// word returns the first eight bytes of a text as a number.
func word(text string) uint64 {
	return binary.LittleEndian.Uint64([]byte(text[:8]))
}
