package prose

// everyday lists words of a language that people use whatever they talk about, in the form of language's lists.
type everyday struct {
	code       string
	dates      string // days of the week, and months that are no other words
	bounds     string // until, before, without: with a denial they forbid
	courtesies string // greetings, thanks and excuses
}

// everydayWords are those of all languages.
var everydayWords = []everyday{
	{"en", "", "before, until, till, unless, without",
		"good morning, good afternoon, good evening, good night, thank you, thanks, thank, you're welcome, " +
			"welcome back, " +
			"hello, hi there, one moment, just a moment, sorry to hear, for your patience, anything else, no problem, " +
			"well done, nice work, take care, see you, sounds good, looks good, looks fine, looks tidy, cheers"},
	{"de", "montags, dienstags, mittwochs, donnerstags, freitags, samstags, sonntags, sonnabend, februar, " +
		"april, august, " +
		"september, november, mitternacht, frist",
		"bevor, bis, ohne, solange, ehe",
		"guten morgen, guten tag, guten abend, gute nacht, hallo, danke, vielen dank, gern geschehen, " +
			"einen moment, bis bald"},
	{"fr", "lundi, mardi, mercredi, jeudi, vendredi, samedi, dimanche, janvier, février, avril, mai, juin, " +
		"juillet, août, " +
		"septembre, octobre, novembre, décembre, minuit, midi, échéance",
		"avant, jusqu'à, jusqu'au, sans, tant que",
		"bonjour, bonsoir, bonne nuit, salut, merci, de rien, un instant, un moment, à bientôt"},
	{"es", "lunes, martes, miércoles, jueves, viernes, sábado, domingo, enero, febrero, marzo, abril, mayo, " +
		"junio, julio, " +
		"agosto, septiembre, octubre, noviembre, diciembre, medianoche, mediodía, plazo",
		"antes de, hasta que, hasta, sin, mientras",
		"buenos días, buenas tardes, buenas noches, hola, gracias, de nada, un momento, hasta luego"},
	{"it", "lunedì, martedì, mercoledì, giovedì, venerdì, sabato, domenica, gennaio, febbraio, aprile, maggio, " +
		"giugno, " +
		"luglio, agosto, settembre, ottobre, novembre, dicembre, mezzanotte, mezzogiorno, scadenza",
		"prima di, prima che, finché, fino a, senza",
		"buongiorno, buonasera, buonanotte, ciao, grazie, prego, un momento, un attimo, a presto"},
	{"pt", "segunda-feira, segunda feira, terça feira, quarta feira, quinta feira, sexta feira, sábado, " +
		"domingo, janeiro, " +
		"fevereiro, março, abril, maio, junho, julho, agosto, setembro, outubro, novembro, dezembro, prazo",
		"antes de, até, sem, enquanto",
		"bom dia, boa tarde, boa noite, olá, obrigado, obrigada, de nada, um momento, até logo"},
	{"nl", "maandag, dinsdag, woensdag, donderdag, vrijdag, zaterdag, zondag, januari, februari, maart, mei, " +
		"juni, juli, " +
		"augustus, oktober, middernacht",
		"voordat, tot, totdat, zonder, zolang",
		"goedemorgen, goedemiddag, goedenavond, hallo, dank je, dank u, bedankt, graag gedaan, een moment, tot ziens"},
	{"pl", "poniedziałek, wtorek, środa, środę, czwartek, piątek, sobota, sobotę, niedziela, niedzielę, " +
		"stycznia, lutego, " +
		"marca, kwietnia, maja, czerwca, lipca, sierpnia, września, października, listopada, grudnia, północy, termin",
		"przed, zanim, dopóki, bez, aż",
		"dzień dobry, dobry wieczór, dobranoc, cześć, dzięki, dziękuję, nie ma za co, chwileczkę, do widzenia"},
	{"ru", "понедельник*, вторник*, среда, среду, четверг*, пятниц*, суббот*, воскресень*, января, февраля, " +
		"марта, апреля, " +
		"мая, июня, июля, августа, сентября, октября, ноября, декабря, полночь, полдень, срок, сроки",
		"до, пока, прежде чем, без",
		"доброе утро, добрый день, добрый вечер, спокойной ночи, привет, здравствуйте, спасибо, пожалуйста, минутку, " +
			"одну минуту, до свидания"},
	{"tr", "pazartesi, salı, çarşamba, perşembe, cuma, cumartesi, ocak, şubat, nisan, mayıs, haziran, temmuz, " +
		"ağustos, " +
		"eylül, ekim, kasım, aralık, gece yarısı",
		"önce, kadar, olmadan, sormadan, izinsiz",
		"günaydın, iyi günler, iyi akşamlar, iyi geceler, merhaba, teşekkürler, teşekkür, sağ ol, rica ederim, " +
			"bir dakika, " +
			"görüşürüz"},
	{"ja", "月曜, 火曜, 水曜, 木曜, 金曜, 土曜, 日曜, 締め切り, 締切, 期限, 来週, 来月, 午前, 午後",
		"まで, 前に, なしで, 無断",
		"おはよう, こんにちは, こんばんは, おやすみ, ありがとう, お疲れ, 少々お待ち, どういたしまして"},
	{"zh", "周一, 周二, 周三, 周四, 周五, 周六, 周日, 星期, 礼拜, 月底, 月初, 年底, 下周, 下个月, 期限, 上午, 下午, 点钟",
		"之前, 以前, 直到, 未经, 没有经过",
		"早上好, 下午好, 晚上好, 晚安, 你好, 您好, 谢谢, 多谢, 辛苦了, 不客气, 稍等, 再见"},
	{"ko", "월요일, 화요일, 수요일, 목요일, 금요일, 토요일, 일요일, 마감, 기한, 다음 주, 다음 달, 오전, 오후",
		"까지, 전에, 없이",
		"안녕하세요, 좋은 아침, 감사합니다, 고마워, 고맙습니다, 수고하, 천만에, 잠시만, 기다려 주세요, 알겠습니다"},
	{"th", "วันจันทร์, วันอังคาร, วันพุธ, วันพฤหัส, วันศุกร์, วันเสาร์, วันอาทิตย์, กำหนดส่ง, สัปดาห์หน้า, เดือนหน้า",
		"จนกว่า, ก่อน, โดยไม่",
		"สวัสดี, อรุณสวัสดิ์, ขอบคุณ, ไม่เป็นไร, รอสักครู่"},
	{"ar", "الأحد, الاثنين, الإثنين, الثلاثاء, الأربعاء, الخميس, الجمعة, السبت, يناير, فبراير, مارس, أبريل, " +
		"مايو, يونيو, " +
		"يوليو, أغسطس, سبتمبر, أكتوبر, نوفمبر, ديسمبر, الموعد, مواعيد, منتصف الليل",
		"قبل, حتى, دون, بدون, إلا",
		"صباح الخير, مساء الخير, صباح النور, مرحبا, مرحباً, السلام عليكم, شكرا, شكراً, عفوا, عفواً, لحظة, تفضل*, " +
			"مع السلامة"},
	{"hi", "सोमवार, मंगलवार, बुधवार, गुरुवार, शुक्रवार, शनिवार, रविवार, जनवरी, फ़रवरी, फरवरी, मार्च, अप्रैल, " +
		"मई, जून, जुलाई, " +
		"अगस्त, सितंबर, अक्टूबर, नवंबर, दिसंबर, अंतिम तिथि, अगले हफ़्ते, अगले हफ्ते, अगले महीने",
		"जब तक, से पहले, बिना, बग़ैर, बगैर",
		"नमस्ते, नमस्कार, सुप्रभात, शुभ रात्रि, धन्यवाद, शुक्रिया, कोई बात नहीं, एक मिनट, ठीक है"},
}
