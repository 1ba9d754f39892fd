package document

import (
	"strconv"
	"strings"
)

// symbols maps a font of symbols, in lower case → the characters that its codes show. A code is given without the bits
// 0xF000 that Word adds.
var symbols = map[string]map[rune]string{
	"symbol":      symbolFont,
	"wingdings":   wingdings,
	"wingdings 2": {'P': "✓", 'O': "✗", 'Q': "☒", 'R': "☑", 'S': "☒", 'T': "☒", '\u00a3': "☐"},
}

// symbolFont is the font Symbol: Greek letters in the place of Latin ones, and signs of mathematics.
var symbolFont = func() map[rune]string {
	all := map[rune]string{0xb0: "°", 0xb1: "±", 0xb2: "″", 0xa2: "′", 0xb3: "≥", 0xa3: "≤", 0xb4: "×", 0xb5: "∝",
		0xb6: "∂", 0xb7: "•", 0xb8: "÷", 0xb9: "≠", 0xba: "≡", 0xbb: "≈", 0xbc: "…", 0xa5: "∞", 0xa7: "♣", 0xa8: "♦",
		0xa9: "♥", 0xaa: "♠", 0xab: "↔", 0xac: "←", 0xad: "↑", 0xae: "→", 0xaf: "↓", 0xce: "∈", 0xc7: "∩", 0xc8: "∪",
		0xcc: "⊂", 0xc6: "∅", 0xd0: "∠", 0xd1: "∇", 0xd5: "∏", 0xd6: "√", 0xd7: "⋅", 0xd8: "¬", 0xd9: "∧", 0xda: "∨",
		0xdb: "⇔", 0xdc: "⇐", 0xde: "⇒", 0xe5: "∑", 0xf2: "∫", 0x22: "∀", 0x24: "∃", 0x40: "≅", 0x5c: "∴", 0x5e: "⊥",
		0x2d: "−", 0xd2: "®", 0xd3: "©", 0xd4: "™", 0xa0: "€"}
	greek := []rune("αβχδεφγηιϕκλμνοπθρστυϖωξψζ")
	upper := []rune("ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ")
	for i := range greek {
		all[rune('a'+i)], all[rune('A'+i)] = string(greek[i]), string(upper[i])
	}
	return all
}()

// wingdings has the boxes, ticks, arrows and bullets of the font.
var wingdings = map[rune]string{0x6f: "☐", 0x71: "☐", 0x72: "☐", 0xa8: "☐", 0xfe: "☑", 0xfd: "☒", 0x78: "☒", 0xfb: "✗",
	0xfc: "✓", 0x4f: "✗", 0x6c: "●", 0x6e: "■", 0xa7: "▪", 0x9f: "•", 0x9e: "·", 0x75: "◆", 0x76: "❖", 0xab: "★",
	0xe0: "→", 0xdf: "←", 0xe1: "↑", 0xe2: "↓", 0xe8: "➔", 0xd8: "➢", 0xf0: "⇨", 0xef: "⇦", 0x4a: "☺", 0x4c: "☹",
	0x46: "☞", 0x28: "☎", 0x2a: "✉", 0x22: "✂", 0x21: "✏", 0x36: "⌛"}

// symbolOf returns the character that a code of a font of symbols shows; ok is false if it is not known.
func symbolOf(font, code string) (shown string, ok bool) {
	n, err := strconv.ParseUint(code, 16, 16)
	if err != nil {
		return "", false
	}
	r := rune(n)
	if known, is := symbols[strings.ToLower(strings.TrimSpace(font))]; is {
		shown, ok = known[r&0x0fff]
		return shown, ok
	}
	if r >= 0xe000 && r <= 0xf8ff { // private to its font
		return "", false
	}
	return string(r), true
}

// legacyValue returns the value of a check box or a list of choices of a form, as Word had them before 2007.
func legacyValue(data *tree) string {
	if box := data.at("w:checkBox"); box != nil {
		if box.isOn("w:checked") || box.at("w:checked") == nil && box.isOn("w:default") {
			return "☒"
		}
		return "☐"
	}
	list := data.at("w:ddList")
	entries := list.all("w:listEntry")
	chosen := list.val("w:result")
	if chosen == "" {
		chosen = list.val("w:default")
	}
	n, err := strconv.Atoi(chosen)
	if err != nil || n < 0 || n >= len(entries) {
		n = 0
	}
	if len(entries) == 0 {
		return ""
	}
	return entries[n].attr("w:val")
}
