package document_test

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/unicode/norm"

	"github.com/loci-memory/loci/files/document"
)

// written are texts in the encodings that their languages were written in: one of about 60 bytes, and a longer one.
var written = []struct{ language, encodings, short, long string }{
	{"Czech", "windows-1250 iso-8859-2 ibm852", "Příliš žluťoučký kůň úpěl ďábelské ódy",
		"Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím a mají spolu " +
			"jednat v duchu bratrství. Každý má všechna práva a všechny svobody."},
	{"Slovak", "windows-1250 iso-8859-2 ibm852", "Všetci ľudia sa rodia slobodní a sebe rovní.",
		"Všetci ľudia sa rodia slobodní a sebe rovní, čo sa týka ich dôstojnosti a práv. Sú obdarení rozumom a svedomím a " +
			"majú navzájom jednať v bratskom duchu."},
	{"Polish", "windows-1250 iso-8859-2 ibm852", "Zażółć gęślą jaźń, proszę Państwa.",
		"Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni rozumem."},
	{"Hungarian", "windows-1250 iso-8859-2 ibm852", "Minden emberi lény szabadon születik és egyenlő.",
		"Minden emberi lény szabadon születik és egyenlő méltósága és joga van. Az emberek, ésszel és lelkiismerettel " +
			"bírván."},
	{"Croatian", "windows-1250 iso-8859-2", "Sva ljudska bića rađaju se slobodna i jednaka.",
		"Sva ljudska bića rađaju se slobodna i jednaka u dostojanstvu i pravima. Ona su obdarena razumom i sviješću pa " +
			"trebaju " +
			"jedno prema drugome postupati u duhu bratstva. Češće žele šumu."},
	{"Romanian", "windows-1250 iso-8859-2", "Toate fiinţele umane se nasc libere şi egale în demnitate.",
		"Toate fiinţele umane se nasc libere şi egale în demnitate şi în drepturi. Ele sunt înzestrate cu raţiune şi " +
			"conştiinţă şi trebuie să se comporte unele faţă de altele în spiritul fraternităţii."},
	{"French", "windows-1252 iso-8859-15 macintosh ibm850 ibm437", "Où est passé l'élève français ? Il est à la " +
		"fenêtre, très tôt.",
		"Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de " +
			"conscience " +
			"et doivent agir les uns envers les autres dans un esprit de fraternité."},
	{"German", "windows-1252 iso-8859-1 macintosh ibm850 ibm437", "Schöne Grüße aus München, und viel Spaß.",
		"Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt und " +
			"sollen " +
			"einander im Geiste der Brüderlichkeit begegnen. Für größere Änderungen prüfen wir die Übersicht."},
	{"Spanish", "windows-1252 macintosh ibm850", "¿Dónde está el niño? Mañana vendrá más tarde, señor.",
		"Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están de razón y " +
			"conciencia, " +
			"deben comportarse fraternalmente los unos con los otros. ¡Qué año tan difícil!"},
	{"Portuguese", "windows-1252 macintosh ibm850", "As informações não estão disponíveis até amanhã.",
		"Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Dotados de razão e de consciência, " +
			"devem " +
			"agir uns para com os outros em espírito de fraternidade. São ações importantes, você já não está só."},
	{"Italian", "windows-1252 macintosh", "La città è più bella perché c'è libertà.",
		"Tutti gli esseri umani nascono liberi ed eguali in dignità e diritti. Essi sono dotati di ragione e di coscienza " +
			"e " +
			"devono agire gli uni verso gli altri in spirito di fratellanza. La libertà è più di così."},
	{"Swedish", "windows-1252 macintosh ibm850", "Alla människor är födda fria och lika i värde.",
		"Alla människor är födda fria och lika i värde och rättigheter. De har utrustats med förnuft och samvete och bör " +
			"handla " +
			"gentemot varandra i en anda av gemenskap. Båda får gå på ån."},
	{"Danish", "windows-1252 macintosh ibm850", "Alle mennesker er født frie og lige, også på søen.",
		"Alle mennesker er født frie og lige i værdighed og rettigheder. De er udstyret med fornuft og samvittighed, og de " +
			"bør " +
			"handle mod hverandre i en broderskabets ånd."},
	{"Icelandic", "windows-1252", "Hver maður er borinn frjáls og jafn öðrum að virðingu.",
		"Hver maður er borinn frjáls og jafn öðrum að virðingu og réttindum. Menn eru gæddir vitsmunum og samvisku, og ber " +
			"þeim " +
			"að breyta bróðurlega hverjum við annan."},
	{"English", "windows-1252 macintosh", "It’s the “best” of times — isn’t it?",
		"It’s the “best” of times – isn’t it? He said “no”, and that’s all… The café wasn’t open; we’ll see."},
	{"Russian", "windows-1251 koi8-r iso-8859-5 ibm866 x-mac-cyrillic ibm855", "Все люди рождаются свободными.",
		"Все люди рождаются свободными и равными в своём достоинстве и правах. Они наделены разумом и совестью и должны " +
			"поступать в отношении друг друга в духе братства."},
	{"Ukrainian", "windows-1251 koi8-u", "Всі люди народжуються вільними і рівними.",
		"Всі люди народжуються вільними і рівними у своїй гідності та правах. Вони наділені розумом і совістю і повинні " +
			"діяти " +
			"у відношенні один до одного в дусі братерства. Її ґанок є їхнім."},
	{"Bulgarian", "windows-1251 iso-8859-5", "Всички хора се раждат свободни и равни.",
		"Всички хора се раждат свободни и равни по достойнство и права. Те са надарени с разум и съвест и следва да се " +
			"отнасят " +
			"помежду си в дух на братство."},
	{"Serbian", "windows-1251 iso-8859-5", "Сва људска бића рађају се слободна и једнака.",
		"Сва људска бића рађају се слободна и једнака у достојанству и правима. Она су обдарена разумом и свешћу."},
	{"Greek", "windows-1253 iso-8859-7", "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι.",
		"Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είναι προικισμένοι με λογική " +
			"και " +
			"συνείδηση, και οφείλουν να συμπεριφέρονται μεταξύ τους με πνεύμα αδελφοσύνης."},
	{"Turkish", "windows-1254 iso-8859-9", "Bütün insanlar hür ve eşit doğarlar, şüphesiz.",
		"Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler ve birbirlerine " +
			"karşı " +
			"kardeşlik zihniyeti ile hareket etmelidirler."},
	{"Hebrew", "windows-1255 iso-8859-8 ibm862", "כל בני האדם נולדו בני חורין ושווים.",
		"כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך חובה עליהם לנהוג איש ברעהו."},
	{"Arabic", "windows-1256 iso-8859-6", "يولد جميع الناس أحرارا متساوين.",
		"يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. وقد وهبوا عقلا وضميرا وعليهم أن يعامل بعضهم بعضا بروح الإخاء."},
	{"Lithuanian", "windows-1257 iso-8859-13", "Visi žmonės gimsta laisvi ir lygūs savo orumu ir teisėmis.",
		"Visi žmonės gimsta laisvi ir lygūs savo orumu ir teisėmis. Jiems suteiktas protas ir sąžinė, ir jie turi elgtis " +
			"vienas " +
			"kito atžvilgiu kaip broliai."},
	{"Latvian", "windows-1257 iso-8859-13", "Visi cilvēki piedzimst brīvi un vienlīdzīgi.",
		"Visi cilvēki piedzimst brīvi un vienlīdzīgi savā pašcieņā un tiesībās. Viņi ir apveltīti ar saprātu un " +
			"sirdsapziņu, un " +
			"viņiem jāizturas citam pret citu brālības garā."},
	{"Thai", "windows-874", "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกัน",
		"มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม " +
			"และควรปฏิบัติต่อกันด้วยเจตนารมณ์แห่งภราดรภาพ"},
	{"Japanese", "shift_jis euc-jp iso-2022-jp", "すべての人間は、生まれながらにして自由である。",
		"すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。"},
	{"Korean", "euc-kr", "모든 인간은 태어날 때부터 자유로우며 평등하다.",
		"모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 부여받았으며 서로 형제애의 정신으로 행동하여야 한다."},
	{"Simplified Chinese", "gb18030 gbk", "会议改到星期五上午十点，请准时参加。",
		"人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。会议改到星期五上午十点。"},
	{"Traditional Chinese", "big5", "會議改到星期五上午十點，請準時參加。",
		"人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心，並應以兄弟關係的精神相對待。會議改到星期五上午十點。"},
	{"French with few accents", "windows-1252 macintosh ibm850", "Il va à Paris, puis à Lyon, très tôt.", "menu du " +
		"jour: café crème, 2 euros"},
	{"German with one umlaut", "windows-1252 macintosh ibm850", "Herr Müller", "Herr Müller ist nicht da, rufen Sie " +
		"bitte morgen an."},
	{"source code", "windows-1251 koi8-r ibm866", "int n = 0; // число строк", "for (int i = 0; i < n; i++) { // по " +
		"всем строкам\n" +
		"  printf(\"%d\", values[i]); // и печатать их\n}\n"},
	{"capitals", "windows-1251 koi8-r ibm866", "ВНИМАНИЕ! НЕ ОТКРЫВАТЬ", "УВАЖАЕМЫЕ ПАССАЖИРЫ! ПОЕЗД НОМЕР ПЯТЬ " +
		"ОТПРАВЛЯЕТСЯ."},
	{"German capitals", "windows-1252 macintosh ibm850", "BÜRO SCHÖNEBERG", "ÄRZTLICHES GUTACHTEN FÜR HERRN MÜLLER, KÖLN"},
	{"a table", "windows-1250 windows-1252", "name;city\nKöhler;Zürich\nMüller;Köln\n",
		"id,name\n1,François\n2,Zoë\n3,Jürgen\n"},
	{"Estonian", "windows-1257 iso-8859-13", "Kõik inimesed sünnivad vabadena.", "Kõik inimesed sünnivad vabadena ja " +
		"võrdsetena oma " +
		"väärikuselt ja õigustelt. Neile on antud mõistus ja südametunnistus."},
	{"Finnish", "windows-1252 macintosh ibm850", "Kaikki ihmiset syntyvät vapaina.", "Kaikki ihmiset syntyvät vapaina " +
		"ja " +
		"tasavertaisina arvoltaan ja oikeuksiltaan. Heille on annettu järki ja omatunto, älkää unohtako."},
	{"Persian", "windows-1256", "همه افراد بشر آزاد به دنيا مي\u200cآيند", "تمام افراد بشر آزاد زاده مي\u200cشوند و از " +
		"لحاظ حيثيت و کرامت و حقوق با هم برابرند."},
	{"DOS table", "ibm850 ibm437", "┌──────┬─────┐\n│ Größe │ Übrig │\n└──────┴─────┘\n",
		"┌──────┬─────┐\n│ Größe │ Übrig │\n├──────┼─────┤\n│ Müller │ schön │\n└──────┴─────┘\nFür Änderungen: Hauptmenü " +
			"wählen.\n"},
}

func namedEncoding(t *testing.T, name string) encoding.Encoding {
	t.Helper()
	if e, err := htmlindex.Get(name); err == nil {
		return e
	}
	e, err := ianaindex.IANA.Encoding(name)
	if err != nil {
		t.Fatal(name, err)
	}
	return e
}

func TestShortAndLongTextsAreDecoded(t *testing.T) {
	t.Parallel()
	encodings := map[string]bool{}
	for _, tt := range written {
		for name := range strings.FieldsSeq(tt.encodings) {
			encodings[name] = true
			for _, text := range []string{tt.short, tt.long} {
				raw, err := namedEncoding(t, name).NewEncoder().Bytes([]byte(text))
				if err != nil {
					t.Errorf("%s in %s: %v", tt.language, name, err)
					continue
				}
				got, charset, err := document.Decode(raw, "")
				if err != nil || norm.NFC.String(got) != text {
					t.Errorf("%s in %s was read as %s, %v:\n%s\n%s", tt.language, name, charset, err, got, text)
				}
			}
		}
	}
	if len(encodings) < 25 {
		t.Errorf("only %d encodings are tried", len(encodings))
	}
}
