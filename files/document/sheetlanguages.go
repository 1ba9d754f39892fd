package document

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// languageMark matches the language of a number format: [$-407] or [$-de-DE], with digits and a calendar before the
// language in [$-107041E].
var languageMark = regexp.MustCompile(`\[\$-([^\]]*)\]`)

// Languages of Microsoft's numbers, which have the language in their lower ten bits and the country above.
const (
	languageBits = 10
	maxCountry   = 0x1f // what is above asks for a form of a language's names
	englishUS    = 0x409
	thaiNumber   = 0x1e
	finnish      = 0x0b
)

// buddhist is the calendar of Thailand in a number format. It is 543 years ahead.
const (
	buddhist      = 7
	buddhistYears = 543
)

// withLanguage returns a number format with its language as a number that the library knows. Of a name such as de-DE
// the library takes the E as a number, which is Hungarian; and numbers in a format whose language it does not know
// are no dates for it.
func withLanguage(code string) string {
	return languageMark.ReplaceAllStringFunc(code, func(mark string) string {
		name := strings.ToLower(languageMark.FindStringSubmatch(mark)[1])
		if strings.HasPrefix(name, "ja-jp-x-gannen") {
			return mark // the library knows it, but not 411 with first years of emperors
		}
		name, _, _ = strings.Cut(name, ",") // behind it are digits and the calendar
		return fmt.Sprintf("[$-%X]", languageNumber(name))
	})
}

// languageNumber returns the number of a language. Of a number it keeps the calendar if that is the Buddhist one, and a
// form of names that formGenitive has.
func languageNumber(name string) int {
	n, err := strconv.ParseInt(name, 16, 64)
	if err != nil {
		return numberOfName(name)
	}
	calendar, number := 0, int(n&0xffff)
	if n>>16&0xff == buddhist {
		calendar = buddhist << 16
	}
	switch language := number & (1<<languageBits - 1); {
	case !isLanguage[language], number == 0xf800, number == 0xf400: // the computer's own
		number = englishUS
	case number>>languageBits > maxCountry && genitives[number] == nil:
		number = language
	}
	return calendar | number
}

// numberOfName returns the number of a language by its name, such as pt-BR.
func numberOfName(name string) int {
	language, _, _ := strings.Cut(name, "-")
	if number := countries[name]; number != 0 {
		return number
	}
	if number := languageNumbers[language]; number != 0 {
		return number
	}
	return englishUS
}

// countries are languages that have names of their own for days or months, or another writing, in some countries.
var countries = map[string]int{"de-at": 0xc07, "zh-tw": 0x404, "zh-hk": 0xc04, "zh-mo": 0x1404, "zh-hant": 0x404,
	"fr-ca": 0xc0c, "ar-iq": 0x801, "ar-sy": 0x2801, "ar-jo": 0x2c01, "ar-lb": 0x3001, "sr-latn-rs": 0x241a,
	"sr-latn": 0x701a, "pt-pt": 0x816, "ms-bn": 0x83e, "es-mx": 0x80a}

// languageNumbers are the numbers of languages by their codes of ISO 639.
var languageNumbers = func() map[string]int {
	all := map[string]int{}
	for pair := range strings.FieldsSeq(`
		ar=1 bg=2 ca=3 zh=804 cs=5 da=6 de=7 el=8 en=9 es=a fi=b fr=c he=d hu=e is=f it=10 ja=411 ko=12 nl=13 no=14 nb=414
		nn=814 pl=15 pt=16 rm=17 ro=18 ru=19 hr=1a bs=141a sr=281a sk=1b sq=1c sv=1d th=1e tr=1f ur=20 id=21 uk=22 be=23
		sl=24 et=25 lv=26 lt=27 tg=28 fa=29 vi=2a hy=2b az=2c eu=2d hsb=2e mk=2f st=30 ts=31 tn=32 ve=33 xh=34 zu=35
		af=36 ka=37 fo=38 hi=39 mt=3a se=3b ga=3c ms=3e kk=3f ky=40 sw=41 tk=42 uz=43 tt=44 bn=45 pa=46 gu=47 or=48
		ta=49 te=4a kn=4b ml=4c as=4d mr=4e sa=4f mn=50 bo=51 cy=52 km=53 lo=54 my=55 gl=56 kok=57 sd=59 si=5b iu=5d
		am=5e ne=61 fy=62 ps=63 fil=64 dv=65 ff=67 ha=68 yo=6a nso=6c ba=6d lb=6e kl=6f ig=70 om=72 ti=73 gn=74 haw=75
		so=77 br=7e mi=81 oc=82 co=83 gsw=84 rw=87 wo=88 gd=91 ku=92`) {
		name, digits, _ := strings.Cut(pair, "=")
		number, _ := strconv.ParseInt(digits, 16, 32) // they are numbers
		all[name] = int(number)
	}
	return all
}()

// isLanguage are the lower bits of the numbers of languages.
var isLanguage = func() map[int]bool {
	all := map[int]bool{}
	for _, number := range languageNumbers {
		all[number&(1<<languageBits-1)] = true
	}
	return all
}()

// dateNames are the names of months from January, of weekdays from Sunday, and their short forms.
type dateNames struct{ months, shortMonths, days, shortDays []string }

// genitives are the names of the languages that Excel writes in the genitive behind a day: 1 марта 2026.
var genitives = map[int]*dateNames{
	0xfc19: {
		strings.Fields("января февраля марта апреля мая июня июля августа сентября октября ноября декабря"),
		strings.Fields("янв фев мар апр май июн июл авг сен окт ноя дек"),
		strings.Fields("воскресенье понедельник вторник среда четверг пятница суббота"),
		strings.Fields("Вс Пн Вт Ср Чт Пт Сб"),
	},
	0xfc22: {
		strings.Fields("січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня"),
		strings.Fields("січ лют бер кві тра чер лип сер вер жов лис гру"),
		strings.Fields("неділя понеділок вівторок середа четвер п'ятниця субота"), strings.Fields("Нд Пн Вт Ср Чт Пт Сб"),
	},
}

// ownNames are the names of languages of which the library has wrong ones.
var ownNames = map[int]*dateNames{
	thaiNumber: {
		strings.Fields("มกราคม กุมภาพันธ์ มีนาคม เมษายน พฤษภาคม มิถุนายน กรกฎาคม สิงหาคม กันยายน ตุลาคม พฤศจิกายน ธันวาคม"),
		strings.Fields("ม.ค. ก.พ. มี.ค. เม.ย. พ.ค. มิ.ย. ก.ค. ส.ค. ก.ย. ต.ค. พ.ย. ธ.ค."),
		strings.Fields("อาทิตย์ จันทร์ อังคาร พุธ พฤหัสบดี ศุกร์ เสาร์"), strings.Fields("อา. จ. อ. พ. พฤ. ศ. ส."),
	},
	finnish: {
		strings.Fields("tammikuu helmikuu maaliskuu huhtikuu toukokuu kesäkuu heinäkuu elokuu syyskuu lokakuu marraskuu " +
			"joulukuu"),
		strings.Fields("tammi helmi maalis huhti touko kesä heinä elo syys loka marras joulu"),
		strings.Fields("sunnuntai maanantai tiistai keskiviikko torstai perjantai lauantai"),
		strings.Fields("su ma ti ke to pe la"),
	},
}

// language returns the names of dates in the language of a format, nil where the library has them, and by how many
// years its calendar is ahead.
func (f numberFormat) language() (names *dateNames, years int) {
	for _, piece := range f {
		mark := languageMark.FindStringSubmatch(piece)
		if mark == nil {
			continue
		}
		n, err := strconv.ParseInt(mark[1], 16, 64)
		if err != nil {
			continue
		}
		if n>>16 == buddhist {
			years = buddhistYears
		}
		number := int(n & 0xffff)
		if names = genitives[number]; names == nil {
			names = ownNames[number&(1<<languageBits-1)]
		}
	}
	return names, years
}

// month returns the name of a month, of so many letters of a code: "mmm" is short, "mmmmm" its first letter.
func (n *dateNames) month(at time.Time, letters int) string {
	full, short := at.Format("January"), at.Format("Jan")
	if n != nil {
		full, short = n.months[at.Month()-1], n.shortMonths[at.Month()-1]
	}
	switch letters {
	case 3:
		return short
	case 4:
		return full
	}
	return string([]rune(full)[:1])
}

// day returns the name of a weekday.
func (n *dateNames) day(at time.Time, isShort bool) string {
	full, short := at.Format("Monday"), at.Format("Mon")
	if n != nil {
		full, short = n.days[at.Weekday()], n.shortDays[at.Weekday()]
	}
	if isShort {
		return short
	}
	return full
}
