package lexicon_test

import (
	"slices"
	"testing"

	"github.com/loci-memory/loci/embed/lexicon"
)

func TestLanguagesAreKnownByTheirSigns(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct {
		language string
		sure     bool
	}{
		"The server was restarted after the power failure.":           {"en", true},
		"Nach dem Stromausfall wurde der Rechner neu gestartet.":      {"de", true},
		"Le serveur a été redémarré après la panne de courant.":       {"fr", true},
		"El servidor se reinició después del corte de luz.":           {"es", true},
		"Il server è stato riavviato dopo il guasto della corrente.":  {"it", true},
		"O servidor foi reiniciado depois da falha de energia.":       {"pt", false},
		"De server werd na de storing weer gestart door het team.":    {"nl", true},
		"Servern startades om efter att strömmen hade gått.":          {"sv", true},
		"Palvelin käynnistettiin uudelleen sähkökatkon jälkeen.":      {"fi", true},
		"A kiszolgálót az áramszünet után újra kellett indítani.":     {"hu", true},
		"Serverul a fost repornit după pana de curent.":               {"ro", true},
		"Sunucu elektrik kesintisinden sonra yeniden başlatıldı.":     {"tr", true},
		"Serwer został uruchomiony ponownie po awarii zasilania.":     {"pl", true},
		"Server byl po výpadku proudu znovu spuštěn.":                 {"cs", true},
		"Toplantıyı gelecek cumaya erteledik.":                        {"tr", true},
		"Asiakas valitti toimituksen viivästymisestä.":                {"fi", true},
		"@Maria, die Rechnung #12 ist noch nicht bei uns angekommen.": {"de", true},
		"Lunch tomorrow?": {"en", false},
		"":                {"en", false},
		"func (s *Store) Close() error { return s.pool.Close() }":           {"en", true},
		"import (\n\t\"io\"\n\t\"os\"\n\t\"strings\"\n)":                    {"en", false},
		"Накладную проверили на складе.":                                    {"en", false},
		"für (i = 0; i < n; i++) { x_der[i] = y_die[i] + z_und[i] }":        {"en", true},
		"The word \"der\" and the word \"die\" are articles in German, too": {"en", true},
	} {
		l, sure := lexicon.LanguageOf(text)
		if l.String() != c.language || sure != c.sure {
			t.Errorf("%q: got %s, sure %t; want %s, %t", text, l, sure, c.language, c.sure)
		}
	}
	if _, ok := lexicon.LanguageNamed("xx"); ok {
		t.Error("xx is the name of a language")
	}
}

// Words of one line have a term in common in texts of the language.
func TestFormsOfAWordHaveATermInCommon(t *testing.T) {
	t.Parallel()
	for language, lines := range map[string][][]string{
		"de": {{"Rechnung", "Rechnungen"}, {"Haus", "Häuser", "Häusern"}, {"Größe", "Groesse", "Grosse"}},
		"es": {{"facturación", "facturaciones", "facturacion"}, {"reunión", "reuniones", "reunion"}},
		"fi": {{"asiakas", "asiakkaat", "asiakkaan"}, {"kokous", "kokoukset"}, {"kone", "koneiden"}},
		"tr": {{"fatura", "faturalar"}, {"makine", "makinelerin"}, {"garanti", "garantisi"}, {"depo", "depodaki"}},
		"pl": {{"faktura", "faktury", "fakturami"}, {"skrzynka", "skrzynek"}, {"pracownik", "pracownicy"}},
		"cs": {{"bedna", "beden"}, {"nájem", "nájmu"}, {"smlouva", "smlouvami"}},
		"en": {{"накладная", "накладную"}, {"счёт", "счета"}, {"фактура", "фактуру"}, {"τιμολόγιο", "τιμολογίων"},
			{"الاجتماع", "اجتماعات"}, {"مُحَاسَبَة", "المحاسبة"}, {"חשבונית", "החשבוניות"}, {"מיטה", "במיטות"},
			{"अस्पताल", "अस्पतालों"}, {"मरीज़", "मरीजों"}},
	} {
		for _, forms := range lines {
			common := lexicon.Stems(language, forms[0])
			for _, form := range forms[1:] {
				if !sharesOne(common, lexicon.Stems(language, form)) {
					t.Errorf("%s: %s has the stems %q, and %s %q", language, forms[0], common, form,
						lexicon.Stems(language, form))
				}
			}
		}
	}
}

func sharesOne(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool { return slices.Contains(b, x) })
}

// A query that was written in one language finds its words in texts of another one, and its words count once.
func TestQueriesAreSearchedInTheLanguagesOfTheScope(t *testing.T) {
	t.Parallel()
	texts := []string{"Die Rechnungen der Server wurden nach dem Ausfall geprüft.", "The servers were checked."}
	var sample [][]int64
	for _, text := range texts {
		sample = append(sample, lexicon.Owned(0, lexicon.Document(text).Terms))
	}
	q := lexicon.NewIDF(sample, len(sample)).Query("server Rechnung")
	words := map[int32]bool{}
	for _, term := range q.Terms {
		if !term.Other {
			words[term.Word] = true
		}
	}
	if len(words) != 2 {
		t.Errorf("the query has %d words, want 2: %+v", len(words), q.Terms)
	}
	for _, text := range texts {
		if !q.In(text) {
			t.Errorf("%q is not found by %+v", text, q.Terms)
		}
	}
}

func TestWantedWordsAreCountedInAnyLanguage(t *testing.T) {
	t.Parallel()
	w := lexicon.NewWanted("Rechnung prüfen prüfen")
	text := "Die Rechnungen wurden nach dem Ausfall geprüft, nicht vorher."
	if w.Words() != 2 || w.Count(text) != 1 || w.Share(text) != 0.5 {
		t.Errorf("got %d words, %d of them in the text", w.Words(), w.Count(text))
	}
	count := w.In(text)
	if n := count("zwei Rechnungen"); n != 1 {
		t.Errorf("a part of the text has %d words, want 1", n)
	}
	if got := w.Terms(text); len(got) != 1 || got[0] != "rechnung" {
		t.Errorf("got the terms %q", got)
	}
	if n := lexicon.NewWanted("").Share(text); n != 0 {
		t.Errorf("a query without words: got the share %v", n)
	}
}

// A text in a given language has its stems, and says so.
func TestALanguageMayBeGiven(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"Die Rechnungen wurden geprüft.": "de", "会議は金曜日です": "ja", "회의록": "ko",
		"資料庫": "zh", "แมว": "th", "Накладная": "ru", "τιμολόγιο": "el", "الاجتماع": "ar", "חשבונית": "he", "किताब": "hi",
		"12 34": "", "": "", "The word 猫 is Japanese, and it means cat.": "en"} {
		if got := lexicon.CodeOf(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	given := lexicon.DocumentIn("Rechnungen", "de")
	if found := lexicon.Document("Rechnungen"); given.Language != "de" || slices.Equal(given.Terms, found.Terms) {
		t.Errorf("got the language %q, and the terms %v as without it", given.Language, given.Terms)
	}
}
