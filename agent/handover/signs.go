package handover

import (
	"regexp"
	"strings"
)

// phrases compiles alternatives that match whole words or phrases in any case. Unlike \b, it knows letters with
// accents.
func phrases(alternatives ...string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:^|[^\pL\pN_])(?:` + strings.Join(alternatives, "|") + `)(?:$|[^\pL\pN_])`)
}

// signs lists, for each section, what its sentences say in English, German, French and Spanish. A sentence belongs to
// the first section that has a matching pattern.
var signs = []struct {
	section string
	form    *regexp.Regexp
}{
	{SectionBlocked, phrases(
		`blocked (?:by|on|until)`, `stuck (?:on|until)`, `waiting (?:for|on)`, `can(?:not|'t) (?:go on|proceed|continue)`,
		`blockiert (?:durch|von|bis)`, `(?:ist|sind|bin|bleib(?:e|t|en)) .{0,80}blockiert`,
		`warte[nt]? (?:noch )?auf`, `kann (?:erst|nicht) weiter`,
		`bloquée?s? (?:par|jusqu|car|parce)`, `en attente d[eu]`, `(?:j'attends|nous attendons|on attend)`,
		`bloquead[oa]s? (?:por|hasta)`, `a la espera de`, `(?:estoy|estamos|sigo|seguimos) esperando`)},
	{SectionDecided, phrases(
		`decided`, `agreed`, `we(?:'ll| will) (?:use|keep|go with)`, `let's use`, `chose`, `instead of`, `from now on`,
		`always`, `never`,
		`beschlossen`, `entschieden`, `vereinbart`, `wir (?:nehmen|verwenden|nutzen|behalten|bleiben bei)`,
		`ab (?:jetzt|sofort)`, `immer nur`, `niemals`,
		`décidée?`, `convenue?`, `(?:nous avons|on a) (?:choisi|retenu)`, `(?:on|nous) (?:garde|utilise|prend|gardons|`+
			`utilisons|prenons)`, `désormais`, `jamais`,
		`decidi(?:mos|do|ó)`, `decidí`, `acord(?:amos|ado)`, `hemos elegido`, `usaremos`, `a partir de ahora`, `nunca`)},
	{SectionLearned, phrases(
		`turns out`, `the cause`, `root cause`, `learned`, `lesson`, `found (?:out|that)`, `because of`, `works only`,
		`does not work`, `it fails`, `fails (?:if|when|because)`,
		`stellte? sich heraus`, `die ursache`, `gelernt`, `(?:lag|liegt) an`, `funktioniert (?:nur|nicht)`, `schlägt fehl`,
		`il s'avère`, `la cause`, `appris`, `ne (?:fonctionne|marche) (?:pas|que)`, `échoue (?:si|quand|parce)`,
		`resulta que`, `la causa`, `aprendi(?:mos|do)`, `aprendí`, `(?:no|sol[oó]) funciona`, `falla (?:si|cuando|porque)`)},
	{SectionNext, phrases(
		`next(?: step|[,:])`, `to do:`, `i(?:'ll| will) (?:now|then|continue)`, `todo`, `remains to`,
		`still (?:need|have) to`,
		`als nächstes`, `nächster schritt`, `ich werde (?:nun|jetzt|dann)`, `(?:muss|müssen) noch`, `steht noch aus`,
		`prochaine étape`, `ensuite,`, `il reste (?:encore )?à`, `je vais (?:maintenant|ensuite)`,
		`(?:siguiente|próximo) paso`, `a continuación`, `(?:queda|falta|faltan) por`)},
	{SectionOpen, regexp.MustCompile(`(?i)^\W*open (?:questions?|issues?|points?)\b|\b(?:remains?|still) open\b|` +
		`\b(?:is|are) (?:still )?(?:unclear|undecided)\b|` +
		`^\W*offene (?:fragen?|punkte?)\b|\b(?:noch|weiterhin) (?:offen|unklar)\b|\bist unklar\b|` +
		`^\W*questions? ouvertes?\b|\breste(?:nt)? (?:ouverte?s?|à décider)|\bpas (?:encore )?clair\b|` +
		`^\W*preguntas? abiertas?\b|\bqueda(?:n)? abiert[oa]s?\b|\bno está claro\b|\b(?:sin|por) decidir\b`)},
	{SectionDone, phrases(
		`(?:i|we)(?:'ve| have)? (?:now )?(?:wrote|built|made|sent|set|ran|split|put|\pL{3,}ed)`, `is done`, `are done`,
		`is fixed`, `now passe?s?`, `all tests pass`,
		`(?:habe?|haben) .{0,80}(?:ge\pL{2,}(?:t|en)|\pL{2,}iert|erstellt|erledigt|behoben|verschoben|bestellt|versendet)`,
		`(?:ist|sind) (?:fertig|erledigt|behoben)`,
		`(?:j'ai|nous avons|on a) (?:déjà |maintenant |aussi |bien )?\pL{2,}(?:é|ée|és|ées|i|is|it|u|ert|ait)`,
		`c'est (?:fait|terminé|corrigé|réparé)`,
		`(?:he|hemos) (?:ya )?(?:\pL{2,}(?:ado|ido)|hecho|escrito|puesto|resuelto|abierto)`,
		`(?:está|quedó) (?:listo|hecho|terminado|resuelto|arreglado)`)},
}

// wished matches wishes and plans, which look like something that was done.
var wished = regexp.MustCompile(`(?i)\b(?:i|we)(?:'ve| have)? (?:now )?` +
	`(?:need|want|hop|lik|expect|suppos|assum|plann|ask)ed\b`)

// undone matches a negated sentence that looks like something that was done.
var undone = phrases(`(?:have|has|had|did|do|does|is|are|was|were|could|can)(?: not|n't| never)`, `not yet`, `cannot`,
	`(?:nicht|nie|kein\pL*) .{0,40}?(?:ge\pL{2,}(?:t|en)|\pL{2,}iert|erstellt|erledigt|behoben|verschoben|bestellt|`+
		`versendet|fertig)`, `n'(?:ai|avons|a|est) (?:pas|jamais|rien)`, `pas encore`,
	`no (?:l[oae]s? )?(?:he|hemos|está|quedó)`, `(?:todavía|aún) no`)

// undecided matches a sentence that says that something was not decided.
var undecided = phrases(`(?:not|\pL+n't|never) (?:yet )?(?:decided|agreed|chosen)`,
	`(?:nicht|nie) (?:\pL+ )?(?:beschlossen|entschieden|vereinbart)`, `pas (?:encore )?(?:décidée?|convenue?|choisie?)`,
	`no (?:lo )?(?:he|hemos|han|está) (?:\pL+ )?(?:decidido|acordado|elegido)`)

// parting matches what is said at the end of a conversation, or at its beginning. It asks for nothing.
var parting = regexp.MustCompile(`(?i)^\W*(?:ok(?:ay)?\W+|great\W+|perfect\W+|super\W+)?(?:thanks?|thank you|` +
	`many thanks|bye|good ?bye|see you|that(?:'s| is| was) (?:all|it)|hi|hello|hey|good (?:morning|evening|night)|` +
	`danke|vielen dank|tschüss|bis (?:bald|morgen|dann)|das (?:war|ist) alles|hallo|guten (?:tag|morgen|abend)|` +
	`merci|au revoir|à bientôt|c'est tout|bonjour|bonsoir|salut|` +
	`(?:muchas )?gracias|adiós|hasta (?:luego|mañana|pronto)|es(?:o es)? todo|hola|buenos días|` +
	`谢谢|再见|你好|ありがとう|こんにちは|спасибо|привет|до свидания)(?:$|[^\pL\pN])`)

// userFacts are the forms in which users tell of themselves. A later fact with the same attribute takes the place of an
// earlier one. Facts without an attribute stand side by side.
var userFacts = []struct {
	attribute string
	said      *regexp.Regexp // by the user
	told      *regexp.Regexp // by others, at the beginning of a line, with the user as its subject; nil if none
}{
	{"name", phrases(`my name(?:'s| is)`, `(?-i:[Cc]all me \p{Lu})\pL+`, `ich hei(?:ß|ss)e`, `mein name ist`,
		`je m'appelle`, `mon nom est`, `me llamo`, `mi nombre es`),
		ofUser(`is (?:named|called)`, `name is`, `heißt`, `s'appelle`, `se llama`)},
	{"home", phrases(`i(?:'m| am)? (?:now |currently |just )?(?:live|living|moved|moving) (?:in|to|at|near|back)`,
		`i(?:'ve| have) (?:just |now )?moved (?:to|in)`, `ich (?:wohne|lebe)`, `ich (?:bin|ziehe) .{0,60}(?:gezogen|um)`,
		`j'habite`, `je vis (?:à|en|au|dans)`, `j'ai déménagé`, `je me suis installée?`,
		`vivo en`, `me (?:he )?mud(?:é|ado) a`),
		ofUser(`lives (?:in|at|near)`, `moved to`, `wohnt`, `lebt in`, `ist .{0,40}gezogen`, `habite`, `vive en`,
			`se mudó a`)},
	{"birthday", phrases(`my birthday`, `i was born`, `mein(?:en)? geburtstag`, `ich bin .{0,40}geboren`,
		`mon anniversaire`, `je suis née?`, `mi cumpleaños`, `nací`),
		ofUser(`birthday is`, `was born`, `hat .{0,20}geburtstag`, `wurde .{0,20}geboren`, `est née?`, `nació`)},
	{"work", phrases(`i(?:'m| am)? (?:now |currently )?(?:work|working) (?:at|for|as|in)`,
		`i (?:started|start) (?:working|work|a job|a new job)`, `my (?:new )?(?:job|employer) is`,
		`ich arbeite`, `je travaille`, `trabajo (?:en|como|para|de)`),
		ofUser(`works (?:at|for|as|in)`, `(?:job|employer) is`, `arbeitet`, `travaille`, `trabaja (?:en|como|para|de)`)},
	{"", phrases(`i(?:'m| am) .{0,20}allergic to`, `my .{0,20}allerg(?:y|ies)`, `i have an? .{0,20}allergy`,
		`ich bin .{0,20}allergisch`, `meine .{0,20}allergien?`, `je suis .{0,20}allergique`, `mes? allergies?`,
		`soy .{0,20}alérgic[oa]`, `mis? alergias?`), nil},
	{"", phrases(`i(?:'m| am) (?:a |an )?(?:vegan|vegetarian|diabetic|left-handed)`,
		`ich bin (?:veganer(?:in)?|vegetarier(?:in)?|vegan|diabetiker(?:in)?)`,
		`je suis (?:végétarien(?:ne)?|végane?|diabétique)`, `soy (?:vegan[oa]|vegetarian[oa]|diabétic[oa])`), nil},
	{"", liking, nil},
	{"", phrases(`my (?:wife|husband|partner|son|daughter|children|kids|mother|father|sister|brother|dog|cat)(?:'s)? .*`+
		`(?:is|are|has|have|was|lives|named|called)`,
		`mein(?:e)? (?:frau|mann|sohn|tochter|kinder|mutter|vater|schwester|bruder|hund|katze) .*(?:ist|sind|hat|heißt)`,
		`m(?:a|on|es) (?:femme|mari|fils|fille|enfants|mère|père|sœur|frère|chien|chat) .*(?:est|sont|a|s'appelle)`,
		`mis? (?:mujer|marido|esposa|esposo|hij[oa]s?|madre|padre|hermana|hermano|perro|gato) .*(?:es|son|tiene|se llama)`,
	), nil},
}

// ofUser compiles what a line says of the user, after an optional subject.
func ofUser(alternatives ...string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)^\W*(?:(?:the )?user(?:'s)? |der nutzer |die nutzerin |l'utilisat(?:eur|rice) |` +
		`(?:el usuario|la usuaria) )?(?:now |jetzt |ahora )?(?:` + strings.Join(alternatives, "|") + `)(?:$|[^\pL\pN_])`)
}

// liking matches what users like or dislike; present matches what such a sentence says of the matter at hand, which is
// nothing lasting.
var (
	liking = phrases(`i (?:really |much )?(?:prefer|love|hate|dislike|can't stand)`, `ich (?:bevorzuge|mag|liebe|hasse)`,
		`je (?:préfère|déteste|n'aime pas)`, `j'(?:aime|adore)`, `prefiero`, `me (?:gustan?|encantan?)`, `odio`)
	present = phrases(`this`, `that`, `it`, `your?`, `these`, `those`,
		`(?:first|second|third|last|other) (?:one|option|version)`,
		`das`, `dies(?:e[rsnm]?)?`, `deine?`, `cet(?:te)?`, `ces?`, `ça`, `ta`, `ton`, `votre`, `est[aeo]s?`,
		`es[aeo]s?`, `tu`)
)

// isUserFact reports whether a sentence of a user tells something lasting of themselves.
func isUserFact(text string) bool {
	for _, f := range userFacts {
		if f.said.MatchString(text) && (f.said != liking || !present.MatchString(text)) {
			return true
		}
	}
	return false
}

// attributeOf returns the attribute of the user that a text tells, such as home; empty if it tells none.
func attributeOf(text string) string {
	for _, f := range userFacts {
		if f.attribute != "" && (f.said.MatchString(text) || f.told.MatchString(text)) {
			return f.attribute
		}
	}
	return ""
}

// changedState matches a sentence that tells the new state of something. The name comes first.
var changedState = regexp.MustCompile(`(?i)^\W*(?:the |project |das projekt |projekt |le projet |projet |` +
	`el proyecto |proyecto )*([\pL\pN][\pL\pN ._'-]{0,59}?) ` +
	`(?:is (?:now|currently|again)? ?(?:paused|on hold|stopped|cancell?ed|archived|live|deprecated|finished|resumed)|` +
	`ist (?:jetzt|nun|vorerst|wieder)? ?(?:pausiert|gestoppt|abgesagt|archiviert|beendet|auf Eis|live)|` +
	`est (?:maintenant|désormais)? ?(?:en pause|suspendue?|arrêtée?|annulée?|archivée?|terminée?)|` +
	`está (?:ahora|ya)? ?(?:en pausa|pausad[oa]|detenid[oa]|cancelad[oa]|archivad[oa]|terminad[oa]))(?:$|[^\pL\pN])`)

// pointing matches words that stand for something that was named before.
var pointing = regexp.MustCompile(`(?i)^(?:it|this|that|he|she|everything|all|work|what|which|who|es|das|dies|er|sie|` +
	`alles|il|elle|ça|cela|ce|tout|esto|eso|ello|él|ella|todo)(?:$| )`)

// stateOf returns the name of a thing if a sentence tells its new state, else "".
func stateOf(text string) string {
	match := changedState.FindStringSubmatch(text)
	if match == nil || pointing.MatchString(match[1]) {
		return ""
	}
	return strings.TrimSpace(match[1])
}
