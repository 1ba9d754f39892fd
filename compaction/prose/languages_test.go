package prose_test

import (
	"testing"

	"github.com/loci-memory/loci/compaction/prose"
)

// What people say about the same in many languages is of the same kinds.
func TestKindsAreReadInManyLanguages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind uint32
		said []string
	}{
		"a prohibition": {prose.Standing, []string{
			"Never open the vault at night.", "Öffne niemals den Tresor.", "N'ouvrez jamais le coffre.",
			"Ne supprime pas cette table.", "No borres esa carpeta nunca.", "Non cancellare quella cartella.",
			"Nunca apague essa pasta.", "Open de kluis nooit.", "Nie usuwaj tego katalogu.", "Не удаляйте эту папку.",
			"Kasayı asla açma.", "金庫は絶対に開けないこと。", "请勿打开保险柜。", "금고를 열지 마세요.", "ห้ามเปิดตู้นิรภัย",
			"لا تفتح الخزنة ليلا.", "तिजोरी मत खोलना।"}},
		"a decision": {prose.Deciding, []string{
			"We went with oak.", "Ich nehme Eiche, weil sie hält.", "Nous prenons le chêne parce qu'il tient.",
			"Nos quedamos con el roble.", "Prendiamo il rovere.", "Vamos usar o carvalho.", "We kiezen voor eiken.",
			"Zostajemy przy dębie.", "Остановимся на дубе.", "Meşe kullanacağız.", "オークにします。", "我们决定用橡木。",
			"참나무로 하기로 했어요.", "ตกลงใช้ไม้โอ๊ก", "قررنا استخدام البلوط.", "हमने ओक तय किया।"}},
		"a wish": {prose.Wishing, []string{
			"I prefer short lines.", "Mir sind kurze Zeilen lieber.", "Je préfère les lignes courtes.",
			"Prefiero líneas cortas.", "Preferirei righe corte.", "Gostaria de linhas curtas.", "Ik heb liever korte regels.",
			"Wolę krótkie wiersze.", "Предпочитаю короткие строки.", "Kısa satırları tercih ederim.", "短い行が好みです。",
			"我希望行短一些。", "짧은 줄을 선호해요.", "อยากได้บรรทัดสั้น", "أفضل الأسطر القصيرة.", "मुझे छोटी पंक्तियाँ पसंद हैं।"}},
		"an open point": {prose.Pending, []string{
			"It is still unclear.", "Das ist noch nicht klar.", "On ne sait pas encore.", "Todavía no se sabe.",
			"Non si sa ancora.", "Ainda não sabemos.", "Dat is nog niet duidelijk.", "Jeszcze nie wiadomo.", "Пока не ясно.",
			"Henüz belli değil.", "まだ未定です。", "还没有定。", "아직 모릅니다.", "ยังไม่รู้", "لم نعرف بعد.", "अभी तक पता नहीं।"}},
		"a correction": {prose.Correcting, []string{
			"Sorry, I gave you the wrong date.", "Ich habe mich geirrt.", "Je me suis trompé.", "Me equivoqué.",
			"Mi sono sbagliato.", "Me enganei.", "Ik heb me vergist.", "Pomyliłem się.", "Я ошибся.", "Yanlış söyledim.",
			"先ほどの日付は間違いでした。", "我说错了日期。", "제가 잘못 말했어요.", "บอกผิดไป", "أخطأت في التاريخ.", "तारीख गलत थी।",
			"It is 12, not 21.", "Es sind 12, nicht 21.", "Их 12, а не 21."}},
	} {
		for _, said := range c.said {
			if !prose.SentenceOf(said).Is(c.kind) {
				t.Errorf("%s is not seen in %q", name, said)
			}
		}
	}
}

// What only names the next thing to look at is bare; what asks for more, or holds longer, is not.
func TestBareRequests(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]bool{
		"Next: src/tide.go.": true, "Can you look at src/tide.go?": true, "Now check src/tide.go please.": true,
		"Weiter mit src/tide.go.": true, "接下来看 src/tide.go。": true, "Continue avec src/tide.go.": true, "Go on.": true,
		"Never touch src/tide.go.": false, "I prefer src/tide.go.": false,
		"Split src/tide.go into parser and printer.": false,
		"src/tide.go is due on Friday.":              false, "No, not src/tide.go.": false,
	} {
		if got := prose.SentenceOf(said).IsBare(); got != want {
			t.Errorf("%q: %t", said, got)
		}
	}
}

// How far something is counts as progress in many languages, also where the whole comes first.
func TestProgressIsReadInManyLanguages(t *testing.T) {
	t.Parallel()
	for _, said := range []string{"We did 7 of the 30 forms.", "7 von 30 Formularen sind fertig.",
		"7 formulaires sur 30 sont prêts.", "Hay 7 de los 30 formularios.", "Sono pronti 7 moduli su 30.",
		"Estão prontos 7 de 30.", "Er zijn 7 van 30 klaar.", "Gotowe 7 z 30.", "Готово 7 из 30.", "30'un 7'si hazır.",
		"30件のうち7件が終わりました。", "30个里面完成了7个,其余7个还没做。", "30개 중 7개, 나머지는 내일.", "7 done, the rest (23) wait.",
		"Sieben sind fertig, die restlichen 23 nicht."} {
		if got, least := prose.SentenceOf(said).CueScore(), 3.0; got < least {
			t.Errorf("%q scores %.1f", said, got)
		}
	}
}
