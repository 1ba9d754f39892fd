package prose

import "testing"

// Hints only spare the expressions that could not match.
func TestHintsLoseNothing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint8{
		"Never mind.":                       hintEmpty,
		"It is called from two places":      hintEmpty,
		"I don't know whether she comes":    hintWhether,
		"Ich weiß nicht, ob er kommt":       hintWhether,
		"Не знаю, приедет ли он":            hintWhether,
		"不知道是否需要":                           hintWhether,
		"그가 올지 여부를 모르겠어요":                   hintWhether,
		"لا أعرف ما إذا كان":                hintWhether,
		"ไม่รู้ว่าจะมาหรือไม่":              hintWhether,
		"Il ne faut pas":                    hintNever,
		"N'ouvrez jamais cette porte":       hintNever,
		"N’ouvrez jamais cette porte":       hintNever,
		"non toccare il cancello":           hintNever,
		"nie ruszaj tego":                   hintNever,
		"Не трогай это":                     hintNever,
		"لا تلمس هذا":                       hintNever,
		"今天谁也别开":                            hintNever,
		"Paketi kapıya bırakmayın":          hintNever,
		"Bunu silmeyiniz":                   hintNever,
		"Send me everything as a PDF":       hintForm,
		"Please keep it under eighty lines": hintKeep,
	} {
		if hintsOf(SpacedOf(text))&want == 0 {
			t.Errorf("%q has no hint", text)
		}
	}
}
