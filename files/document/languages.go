package document

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// language is how a language is written, as far as its letters are not those of ASCII. Encodings are told apart by
// the language that their text would be in.
type language struct {
	name    string
	weight  map[rune]float64 // logarithms of the frequencies of letters, in lower case where there is case
	isASCII bool             // most of its letters are those of ASCII
	ascii   float64          // weight of an ASCII letter
	accents map[rune]bool    // some of them are in every text in lower case; nil: not so
	foreign float64          // weight of a letter of other languages in the same script
	usual   float64          // mean weight of its letters in a text
}

// frequencyFall is the logarithm of how many times as frequent the first letter of a language is as the last.
const frequencyFall = 4

// Weights of letters that are not among a language's own, as logarithms of their frequencies.
const (
	weighASCII = -0.15 // an ASCII letter, in a language without such letters
	weighAlien = -9    // a letter of other languages in the same script
)

// newLanguage weighs letters by their rank, as the frequencies of letters fall. letters has the most frequent ones
// first, and rare ones behind a blank. perMille is how many of 1,000 letters are among them.
func newLanguage(name, letters string, perMille float64) *language {
	l := &language{name: name, weight: map[rune]float64{}, isASCII: perMille < 500}
	frequent, _, _ := strings.Cut(letters, " ")
	sum, rank, falls := 0.0, 0, float64(utf8.RuneCountInString(frequent))/frequencyFall
	for _, r := range letters {
		if rank++; r == ' ' {
			rank += int(falls)
			continue
		}
		l.weight[r] = math.Exp(-float64(rank) / falls)
		sum += l.weight[r]
	}
	for r, w := range l.weight {
		l.weight[r] = math.Log(w / sum * perMille / 1000)
		l.usual += w / sum * l.weight[r]
	}
	l.ascii = math.Log(1 - perMille/1000)
	if !l.isASCII {
		l.ascii = weighASCII
	}
	l.foreign = min(weighAlien, math.Log(perMille/1000)+weighAlien/2)
	return l
}

// latin returns a language with ASCII letters and others.
func latin(name string, perMille float64, letters string) *language {
	return newLanguage(name, letters, perMille)
}

// accented returns a language with letters that every text in lower case has some of.
func accented(l *language, letters string) *language {
	l.accents = runesOf(letters)
	return l
}

// other returns a language without ASCII letters.
func other(name, letters string) *language { return newLanguage(name, letters, 1000) }

var (
	estonian = latin("Estonian", 35, "äõü öšž")

	western = []*language{latin("English", 2, "é ïöñ"), latin("French", 40, "éàèêçôâîûù œïëæü"), latin("German", 25,
		"üäöß é"),
		latin("Spanish", 25, "óíáéñú ü¿¡"), latin("Portuguese", 45, "ãáçéíóêõú âàô"), latin("Italian", 10, "àèòéùì"),
		latin("Swedish", 50, "äåö é"), latin("Danish and Norwegian", 30, "åøæ éò"), latin("Finnish", 50, "äö å"),
		latin("Catalan", 25, "àéíóèòçú ïü·"), latin("Icelandic", 100, "íðáéóöúýþæ"), latin("Dutch", 5, "éëïóèü"), estonian}
	central = []*language{latin("Czech", 130, "íáěéřýčžšůú óťňď"), latin("Slovak", 110, "áíéčšžýúťľ ňôäďóŕĺ"),
		latin("Polish", 70, "łęążśćó ńź"), latin("Hungarian", 110, "áéöóőüíú ű"), latin("Croatian and Slovene", 35, "čćšžđ"),
		latin("Romanian", 60, "ăîâşţșț")}
	baltic   = []*language{latin("Lithuanian", 70, "ėšžųįąūčę"), latin("Latvian", 110, "āīēšūņžļ ķģčŗō"), estonian}
	turkic   = []*language{latin("Turkish", 100, "ışüçğöi âîû")}
	southern = []*language{latin("Esperanto", 25, "ĉĝŭŝĵĥ"), latin("Maltese", 50, "ħġżċàè")}
	vietic   = []*language{latin("Vietnamese", 250, "đ\u0301\u0300ưôơêâă\u0323\u0309\u0303áàóòéíúìùèýãõ")}

	cyrillic = []*language{other("Russian", "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфёъ"), other("Ukrainian",
		"оаинвіертслкдумпязьбгчйхїжцшюєщфґ"),
		other("Bulgarian", "аиоетнрсвлкпдмзъгубчщцяжйхшфюь"), other("Serbian", "аиоенрсјтувдкмплгзбчшцхњжћљђџф"),
		other("Belarusian", "аінеркстлвудмпоязыгцьбчшйўжхюёэф"), other("Macedonian", "аоеинтрсвдкјмлупзгчбшцжхњќљџѓѕф")}
	hellenic = []*language{accented(other("Greek", "αοιετσνηυρπκμλςάόίγδέήθχωφύβώξζψϊϋΐΰ"), "άέήίόύώ")}
	semitic  = []*language{other("Hebrew", "יוהלארתבשמנםעחקדכפטןסגצזךץףְִֵֶַָֹּ־")}
	arabic   = []*language{other("Arabic", "اليمنورتبعدهسفةقحكأجشطصخىإضزذثءغئؤآظًٌٍَُِّْ،؟ـ"),
		other("Persian", "اینردهمتوسبشکزلفگعخقجچپحصآطءژضغثذئظؤ،؟\u200c")}
	thai = []*language{other("Thai", "านรกเองมยลวดทตส"+
		"\u0e31\u0e35่้\u0e34ะคบปหแจพไใขโ็\u0e39\u0e38ช\u0e36\u0e37ถผซณธำ์ภศฐษญฉฟฝฤฆๆฮฎฏฬฒฑฌฯ๑๒๓๔๕๖๗๘๙๐")}
)

// Characters that are frequent in texts of East Asia. Others are many times as rare.
const (
	hanBoth = "的一是不了在人有我他大中上下和地到以就出可也得子那自之年用所成生作家分行方法公工力同本分定天主明全三水名真走自想心月日本十民第意外高前" +
		"好小些老文相世位度先海原立理加美平果路入口市者金山指社形北南西東子火木土手足目耳白空雨春夏秋冬年女男父母"
	hanSimple = "们这个来为国说时要会对能而着过发后里道然种事多经么去学如都现当没动面起看还进部其样她开但因只从实军无它与长把机此已使情性知又关点正业将两间由问" +
		"很最重并物应战向头体政见被利什二等产或新己制身斯话合回特代内信表化给次门任常通教儿声提及比员解论处义各几认条系气题活尔更别打变四神总何电数安少报才结" +
		"反受太量再感建务做接必场件计管期直德资命许统区保至队便决治展马科司五基眼书非则听却界达光放强即像难且权思王象完设式色记品住告类求据程边死张该交规万取拉" +
		"格望觉术领共确传师观清今切院让识候带导争运姓址北京严尊律赋良弟兄责任"
	hanTraditional = "們這個來為國說時要會對能而著過發後裡道然種事多經麼去學如都現當沒動面起看還進部其樣她開但因只從實軍無它與長把機此已使情性知又關點正業將" +
		"兩間由問很最重並物應戰向頭體政見被利什二等產或新己制身話合回特代內信表化給次門任常通教兒聲提及比員解論處義各幾認條系氣題活爾更別打變四神總何電數安少" +
		"報才結反受太量再感建務做接必場件計管期直德資命許統區保至隊便決治展馬科司五基眼書非則聽卻界達光放強即像難且權思王象完設式色記品住告類求據程邊死張該交規" +
		"萬取望覺術領共確傳師觀清今切院讓識候帶導爭運嚴尊律賦良弟責"
	kanji = "日一国会人年大十二本中長出三同時政事自行社見月分議後前民生連五発間対上部東者党地合市業内相方四定今回新場金員九入選立開手米力学問高代明実円関決子" +
		"動京全目表戦経通外最言氏現理調体化田当八六約主題下首意法不来作性的要用制治度務強気小七成期公野協取都和統以機平総加山思家話世受区領多県続進正安設保改" +
		"数記院女初指権心界支第産結百派点教報済書府活原先共得解名交資予川向際査勝面委告軍文反元重近千考判認画海参売利組知案道信策集在件団別物側任引使求所次水" +
		"半品昨論計死官増係感特情投示変打男基私各始島直両革価式確村提運終果西勢減台広容必応演電歳住争談能無再位置企真流格有口過局少放税常校料状工建語球営空職証" +
		"土与急止送援供可役構木割聞身費付由説転食比難防補車優夫研収断何南石足境神番規術護展態導備宅害配算視条独席起着店残線病農州質待試例働形落好退準造英" +
		"低毎復仕去味負写評守種美命量望然早権利尊厳等自由"
)

// syllables are those that are frequent in Korean.
const syllables = "이다는의에가을를한고기하지사로자도은인어나대시리그서아해정부수있보일전스주원제라상만과들성여교국동면경조당화장우선구오된방신금공용관연문생소" +
	"무실모발위비안년유것간학회말중식업물행력치마세바내러게니거저요각때며등형름김철울산않없습았였했까야너더데여와으되될할함합"

// runesOf returns the characters of a text as a set.
func runesOf(text string) map[rune]bool {
	set := map[rune]bool{}
	for _, r := range text {
		set[r] = true
	}
	return set
}

// script is a language of East Asia. Its weights are logarithms of frequencies.
type script struct {
	common             map[rune]bool
	kana, hangul       float64
	frequent, rare     float64
	rarest             float64 // of characters outside the first level of a national standard
	halfWidth, unknown float64
}

var (
	chineseSimple      = script{runesOf(hanBoth + hanSimple), -12, -14, -5.6, -8.5, -10, -13, -14}
	chineseTraditional = script{runesOf(hanBoth + hanTraditional), -12, -14, -5.6, -8.5, -10, -13, -14}
	japaneseScript     = script{runesOf(hanBoth + kanji), -3.8, -14, -6.2, -9, -12, -7, -14}
	koreanScript       = script{runesOf(syllables), -12, -9, -5.6, -13, -13, -13, -14}
)

// weigh returns the logarithm of a character's frequency.
func (s script) weigh(r rune) float64 {
	switch {
	case r >= 0x3041 && r <= 0x30ff:
		return s.kana
	case r >= 0xff61 && r <= 0xff9f:
		return s.halfWidth
	case s.common[r]:
		return s.frequent
	case unicode.Is(unicode.Hangul, r):
		return s.hangul
	case r >= 0x4e00 && r <= 0x9fff:
		return s.rare
	case r >= 0x3000 && r <= 0x303f || r >= 0xff01 && r <= 0xff5e: // punctuation
		return -4
	case unicode.Is(unicode.Han, r):
		return s.rarest
	}
	return s.unknown
}
