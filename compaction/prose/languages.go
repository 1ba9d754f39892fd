package prose

import "slices"

// language is what people write in a language as they demand, wish, decide, ask, and so on. Each list names words,
// phrases, and with "*" the beginnings of words, separated by ", ". A word in a script where words are not set apart,
// or where they take endings (Korean), is found anywhere.
type language struct {
	code string

	rules     string // prohibitions, and what holds from now on
	duties    string // what must be, may be or is bounded
	wishes    string
	replies   string // how the user wants to be answered
	owning    string
	dates     string
	decisions string
	reasons   string
	findings  string
	pending   string // what is open, or waits for someone
	notes     string // what is to be remembered
	relating  string // names, addresses, and who is who
	changes   string // corrections
	denials   string
	numbers   string
	left      string // what remains to be done
	failures  string

	asking      string // beginnings of requests for the next step
	announcing  string
	introducing string
	fillers     string // words before a beginning
}

// languages are signs of things that will matter later, in all languages.
var languages = slices.Concat(western, eastern)

// western are the languages in Latin letters but Turkish. English has the most signs, because most sessions of agents
// have English in them.
var western = []language{
	{
		code: "en",
		rules: "may only, only ever, out of bounds, at your own risk, may not, not to be, is not to, are not to, " +
			"never, always, mustn't, must not, forbidden, prohibited, not allowed, under no circumstances, dare, " +
			"dares, as it is, as they are, the way it is, stays as, stay as, stays exactly, remain as, " +
			"remains as, stays put, nobody, no one, do not, don't touch, from now on, no longer, make sure, " +
			"whatever you do, hands off, leave it, alone, keep away, keep out, stay away, stay out, steer clear, " +
			"stay clear, off limits, untouched, every time, each time, whenever",
		duties: "stays in, stay in, stays on, stays with, stays at, stays out, stays off, goes in, goes into, " +
			"go in, go into, belongs in, belong in, be cross if, be upset if, be angry if, be mad if, capped, " +
			"cap, ceiling, must, have to, has to, need to, needs to, require, required, requires, shall, should, " +
			"shouldn't, mandatory, allowed, only, at most, at least, no more than, no less than, maximum, " +
			"minimum, limit, limited, up to, without, except, unless, otherwise, don't, ever, cannot, can't, " +
			"avoid, whoever, stop, refrain, forbid*, prohib*, mandator*, requir*",
		replies: "call me, write to me, answer me, answer in, reply to me, reply in, talk to me, speak to me, " +
			"address me",
		wishes: "leave out, british english, american english, prefer, prefers, preferred, preferably, " +
			"preference, rather, favourite, favorite, like, likes, love, loves, hate, hates, dislike, want, " +
			"wants, wish, wishes, fond of, allergic, allergy, vegan, vegetarian, call me, instead, fine with, " +
			"i'd rather",
		owning: "my, mine, our, ours, i'm, i am, i have, i've, we're, we are, we have, we've, we, us",
		dates: "deadline, due, midnight, noon, morning, mornings, evening, evenings, afternoon, afternoons, " +
			"until, birthday, appointment, january, february, march, april, june, july, august, september, " +
			"october, november, december, monday, mondays, tuesday, tuesdays, wednesday, wednesdays, thursday, " +
			"thursdays, friday, fridays, saturday, saturdays, sunday, sundays, end of, beginning of, next week, " +
			"next month, next quarter, next year, no later than, in advance, weeks ahead, days before",
		decisions: "the plan is, so the plan, the plan then, let's do, let's take, let's keep, let's stick, " +
			"let's have, let's make it, we're going with, i've decided, it's decided, we'll do, settled, settl*, " +
			"agree*, decid*, decis*, choos*, approv*, reject*, decide, agree, agreed, chose, chosen, picked, " +
			"opted, settled on, settled for, went for, went with, go for, go with, going for, going with, " +
			"ruled out, switch to, switched to, switching to, instead of, let's use, we use, we'll use, stick to, " +
			"stick with, signed off, we keep, we're keeping, are keeping, we'll keep, stay with, staying with, " +
			"stays at, dropping, we drop, we'll drop, replace it with, in favour of, in favor of, we'll call, " +
			"i'll take, we'll take, i'm taking, we're taking",
		reasons: "because, since, so that, due to, owing to, reason, therefore, that's why, in order to",
		findings: "found, turns out, turned out, cause, caused, causes, comes from, come from, came from, " +
			"culprit, traced, discovered, confirmed, measured, revealed, reveals, result, resulted, shows that, " +
			"showed that, proved, proves, the problem is, the problem was, the issue is, the issue was, " +
			"the bug is, the bug was, the answer is, the fix is, the fix was, the trick is, the solution is, " +
			"leak, leaks, bottleneck, verified, reproduced, learned, identified, concluded, it was the, " +
			"responsible for, explains",
		pending: "still open, open question, still need, still needs, still missing, still unclear, " +
			"still waiting, unclear, undecided, unresolved, tbd, todo, pending, still nothing, nothing yet, " +
			"no reply, no word, no news, yet to, waiting for, waiting on, not yet, nobody knows, nobody has, " +
			"no answer, still to do, left to do, to be done, not answered, haven't answered, hasn't answered, " +
			"haven't heard, haven't decided, hasn't decided, don't know, no idea, up in the air, remind me, " +
			"follow up, come back to, to be decided, to be confirmed, to be clarified, open point",
		notes: "remember, note that, keep in mind, good to know, important, importantly, for the record, fyi, " +
			"between us, be careful, careful, beware, bear in mind, heads up, before we start, just so you know",
		relating: "named, name is, lives, works for, works at, works as, reached, phone, email, e mail, address, " +
			"contact, born, married, daughter, son, wife, husband, partner, mother, father, sister, brother, " +
			"boss, colleague, landlord, customer, client, owner, budget",
		changes: "wrong one, counted again, checked again, looked again, measured again, recounted, rechecked, " +
			"double checked, misread, miscounted, misheard, mistyped, typo, mixed up, mixed them up, forget the, " +
			"i take that back, on second thought, not quite right, update, scrap that, scratch that, " +
			"change of plan, change of plans, new plan, not ready, slips to, now on, now at, correction, " +
			"corrected, moves to, moved to, postponed, brought forward, changed to, changes to, not any more, " +
			"anymore, no longer, actually, rectification, misspoke, mistaken, my mistake, my bad, make that, " +
			"i was wrong, the wrong, was wrong, were wrong, got it wrong, i meant, should have said",
		denials: "no, not, none, nobody, nothing, isn't, aren't, won't, doesn't, didn't, wasn't, haven't, hasn't, " +
			"dislike",
		numbers: "two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, fifteen, twenty, thirty, " +
			"forty, fifty, hundred, thousand, million, dozen, half",
		left: "left, remaining, remain, remains, to go, are still, is still, still wait, wait, the rest, " +
			"the other, the others",
		failures: "error, errors, exception, traceback, fail, failed, fails, failure, fatal, panic, denied, " +
			"refused, undefined, cannot, conflict, not found, timed out",
		asking: "go on, go ahead, let's see, let's look, let's go, make, move, rename, fix, change, use, try, " +
			"commit, undo, revert, sort, continue, carry on, delete, remove, create, update, implement, refactor, " +
			"clean, deploy, ship, test, build, install, set, same, do the, do it, can you, could you, would you, " +
			"will you, please, show, tell, give, find, check, look, run, open, read, write, add, put, list, " +
			"search, explain, summarize, summarise, what, which, how, where, when, why, is, are, do, does",
		announcing: "let me, i'll, i will, i'm going to, i am going to, shall i, should i, would you like, " +
			"do you want, here is, here are, done",
		introducing: "i am, i'm, i have, i've, i live, i work, i speak, i prefer, i like, i love, i hate, " +
			"i'd rather, i would rather, call me, my name",
		fillers: "ok okay thanks good great and now then next please hm hmm yes no also hi hello sure first",
	},
	{
		code: "de",
		rules: "nie, niemals, immer, verboten, niemand, nicht anfassen, so lassen, wie sie ist, wie es ist, " +
			"wie er ist, wie sie sind, bleibt so, bleiben so, bleibt wie, bleiben wie, nichts mehr, finger weg, " +
			"auf keinen fall, ab jetzt, ab sofort, jedes mal, bitte nicht, bitte nichts, bitte keine, " +
			"bitte keinen",
		duties: "darfst, dürft, darf, dürfen, verbot*, verbiet*, muss, müssen, kein, keine, höchstens, " +
			"mindestens, unbedingt, nur",
		replies: "nenn mich, sag du, duz mich, sprich mich, schreib mir, antworte mir, antworte auf",
		wishes:  "lieber, bevorzuge, mag, möchte, hätte gern, wäre mir, am liebsten, allergisch",
		owning:  "mein, meine, meiner, unser, unsere, wir, uns",
		dates: "januar, februar, märz, mai, juni, juli, oktober, dezember, montag, dienstag, mittwoch, " +
			"donnerstag, freitag, samstag, sonntag",
		decisions: "dann eben, dann doch, dann lieber, also doch, beschl*, entschied*, entscheide, vereinbar*, " +
			"geeinigt*, festgeleg*, freigegeb*, statt, nehmen wir, wir nehmen, ich nehme, nehme ich, bleiben bei, " +
			"bleibe bei, wir bleiben, bleibt es bei, ich wähle, wir wählen, wir verwenden, wir setzen auf, " +
			"ich setze auf",
		reasons:  "weil, damit, denn, deshalb, daher",
		findings: "ursache, liegt an, stellt sich heraus, gefunden",
		pending: "offen, ungeklärt, unklar, noch nicht, steht noch aus, fehlt noch, zu klären, wissen wir nicht, " +
			"weiß niemand, weiß noch, warte auf, warten auf, keine ahnung",
		notes: "wichtig, merk dir, denk daran, achtung",
		changes: "nochmal gezählt, nachgezählt, verzählt, verlesen, nachgesehen, nicht richtig, geändert, " +
			"geändert*, doch am, neuer termin, korrektur, korrigiere, doch nicht, verschoben, vertan, geirrt, " +
			"mein fehler, sondern, stimmt nicht, falsch gesagt, falsch angegeben, richtig ist",
		denials: "nicht, nichts, kein, keine, keinen",
		numbers: "zwei, drei, vier, fünf, sechs, sieben, acht, neun, zehn, elf, zwölf, zwanzig, dreißig, " +
			"hundert, tausend",
		left:     "übrig, übrigen, restlichen, verbleibenden, fehlen, fehlt, rest, die anderen",
		failures: "fehler, fehlgeschlagen, abgelaufen, verweigert, nicht gefunden, gescheitert",
		asking: "kannst du, könntest du, schau, zeig, mach, prüf, prüfe, lies, öffne, weiter, such, bitte, was, " +
			"welche, wie, wo, wann, warum, ist, sind, gibt es",
		announcing:  "ich werde, soll ich, hier ist, hier sind, fertig",
		introducing: "ich bin, ich habe, ich mag, ich möchte",
		fillers:     "und jetzt dann danke gut als nächstes nun noch",
	},
	{
		code: "fr",
		rules: "jamais, toujours, interdit, interdite, ne touchez, ne pas, tel quel, telle quelle, tels quels, " +
			"reste tel, reste comme, restent comme, personne ne, à partir de maintenant, désormais, chaque fois, " +
			"en aucun cas",
		duties: "défense, interd*, doit, doivent, il faut, au plus, au maximum, au moins, obligatoire, seulement, " +
			"uniquement",
		replies: "appelle-moi, appelez-moi, tutoie-moi, tutoyez-moi, écrivez-moi, répondez en, réponds en, " +
			"écris-moi",
		wishes: "préfère, préférerais, j'aimerais, je veux, je voudrais, j'aime, plutôt",
		owning: "mon, mes, notre, nos, nous",
		decisions: "décid*, conven*, choisi*, au lieu de, je prends, nous prenons, on prend, on part sur, " +
			"on garde, nous gardons, je garde, on reste sur, nous restons, je choisis, je retiens, nous retenons, " +
			"on retient",
		reasons:  "parce que, parce qu'il, parce qu'elle, parce qu'ils, parce qu'on, afin de, puisque",
		findings: "la cause, vient de",
		pending: "en attente, reste à, pas encore, en suspens, on ne sait pas, je ne sais pas, à confirmer, " +
			"à décider, aucune idée",
		notes: "important, attention, retiens, pour info",
		changes: "recompté, mal lu, vérifié à nouveau, pas exact, changement, reporté, reportée, en fait, " +
			"rectification, me suis trompé, me suis trompée, erreur de ma part, correction",
		denials:  "pas, non",
		numbers:  "deux, trois, quatre, cinq, sept, huit, neuf, dix, douze, vingt, trente, cent, mille",
		left:     "restent, restants, restantes, manquent, les autres",
		failures: "erreur, échec, échoué, expiré, refusé, introuvable, impossible de",
		asking: "peux-tu, peux tu, pouvez-vous, montre, regarde, vérifie, lis, ouvre, continue, passe à, fais, " +
			"cherche, et le, et la, quel, quelle, que, qu'est, où, quand, comment, pourquoi, est-ce, " +
			"s'il te plaît",
		announcing:  "je vais, voici",
		introducing: "je suis, je préfère",
		fillers:     "et maintenant puis merci ensuite alors bon ok",
	},
	{
		code: "es",
		rules: "nada de, nunca, jamás, siempre, prohibido, prohibida, nadie, no tocar, no borrar, no cambiar, " +
			"no modificar, no toqu*, no borre*, no elimine*, no cambie*, no modifique*, no use*, no envíe*, " +
			"no mueva*, no publique*, no reinicie*, no mande*, como está, como están, queda como, quedan como, " +
			"tal cual, a partir de ahora, cada vez, en ningún caso, bajo ningún",
		duties: "debe, deben, hay que, tiene que, tienen que, obligatorio, como máximo, como mínimo, al menos, " +
			"solo, sólo, solamente",
		replies: "tutéame, háblame, llámame, trátame, escríbame, respóndeme, contéstame, responde en, escríbeme",
		wishes:  "prefiero, preferiría, quiero, quisiera, me gusta, me gustan, me gustaría",
		owning:  "mi, nuestro, nuestra, hemos, nosotros",
		decisions: "acorda*, acordó*, elegi*, decidido, decidimos, en lugar de, en vez de, elijo, usaremos, " +
			"nos quedamos, me quedo con, optamos, vamos con, tomamos, descartamos",
		reasons: "porque, ya que, debido a, puesto que",
		pending: "pendiente, pendientes, por saber, por decidir, por confirmar, todavía no, aún no, no sabemos, " +
			"ni idea, esperando, a la espera",
		notes: "importante, ojo, recuerda",
		changes: "volví a contar, leí mal, conté mal, olvida lo, cambio, cambiado, se mueve, corrección, corrijo, " +
			"me equivoqué, me he equivocado, mejor dicho, sino, en realidad",
		denials:  "no, ni, ningún, ninguna",
		numbers:  "dos, tres, cuatro, cinco, seis, siete, ocho, nueve, diez, doce, veinte, treinta, cien, mil",
		left:     "faltan, falta, quedan, queda, restantes, los demás, las demás",
		failures: "error, fallo, falló, caducado, denegado, rechazado, no encontrado",
		asking: "puedes, podrías, mira, revisa, muestra, abre, lee, sigue, continúa, busca, haz, y el, y la, qué, " +
			"cuál, cómo, dónde, cuándo, por qué, por favor",
		announcing:  "voy a, aquí está",
		introducing: "prefiero, soy, tengo",
		fillers:     "y ahora luego gracias vale bien entonces",
	},
	{
		code: "it",
		rules: "niente più, mai, sempre, vietato, vietata, nessuno, proibito, resta così, restano così, " +
			"resta com'è, così com'è, d'ora in poi, ogni volta, in nessun caso",
		duties:  "vietat*, deve, devono, bisogna, occorre, obbligatorio, al massimo, almeno, solo, soltanto",
		replies: "chiamami, dammi del tu, parlami, rispondimi, scrivimi, rispondi in",
		wishes:  "preferisco, preferirei, vorrei, voglio, mi piace, mi piacciono",
		owning:  "mio, mia, nostro, nostra, noi, abbiamo",
		decisions: "scelt*, deciso, decidiamo, scelgo, invece di, prendo, prendiamo, usiamo, useremo, teniamo, " +
			"restiamo, optiamo, anziché",
		reasons: "perché, poiché, dato che",
		pending: "da decidere, in sospeso, non ancora, da confermare, non sappiamo, non si sa, in attesa",
		notes:   "importante, attenzione, ricorda",
		changes: "ricontato, letto male, contato male, cambiamento, correzione, mi sono sbagliato, " +
			"mi sono sbagliata, ho sbagliato, anzi, bensì, spostato, spostata, in realtà",
		denials:  "non, nessun, nessuna",
		numbers:  "due, tre, quattro, cinque, sette, otto, nove, dieci, dodici, venti, trenta, cento",
		left:     "restano, mancano, rimangono, rimanenti, gli altri, le altre",
		failures: "errore, fallito, scaduto, negato, rifiutato, non trovato",
		asking: "puoi, potresti, guarda, controlla, mostra, apri, leggi, continua, cerca, fai, che cosa, cosa, " +
			"quale, come, dove, quando, per favore",
		announcing:  "ecco, adesso faccio",
		introducing: "preferisco",
		fillers:     "e adesso ora poi grazie bene allora",
	},
	{
		code: "pt",
		rules: "nada de, nunca, jamais, sempre, proibido, proibida, ninguém, não mexa*, não mexer, não toque*, " +
			"não apague*, não altere*, não mude*, não use*, não envie*, não mova*, não publique*, não reinicie*, " +
			"não mande*, fica como, ficam como, como está, a partir de agora, cada vez, de jeito nenhum, " +
			"em nenhum caso",
		duties: "proib*, deve, devem, tem que, têm que, é preciso, obrigatório, no máximo, no mínimo, pelo menos, " +
			"só, somente, apenas",
		wishes: "prefiro, preferia, gosto, gostaria, quero, queria",
		owning: "meu, minha, nosso, nossa, nós, temos",
		decisions: "escolh*, decidimos, decidido, em vez de, ao invés, vamos usar, vamos com, ficamos com, " +
			"usaremos, optamos, mantemos",
		reasons: "porque, pois, já que, devido a",
		pending: "pendente, ainda não, por decidir, por confirmar, não sabemos, à espera, aguardando, falta saber",
		notes:   "importante, atenção, lembra",
		changes: "contei de novo, li errado, contei errado, mudança, correção, corrigindo, me enganei, " +
			"enganei-me, errei, na verdade, adiado, adiada",
		denials:  "não, nem, nenhum, nenhuma",
		numbers:  "dois, duas, três, quatro, oito, dez, doze, vinte, trinta, cem",
		left:     "faltam, falta, restam, restantes, os outros, as outras",
		failures: "erro, falha, falhou, expirado, negado, recusado, não encontrado",
		asking: "pode, podes, poderia, veja, vê, verifica, mostra, abre, lê, continua, procura, faz, e o, e a, " +
			"qual, como, onde, quando, por que, por favor",
		announcing:  "vou, aqui está",
		introducing: "sou, tenho",
		fillers:     "e agora depois obrigado obrigada bem então",
		replies: "me chame, chama-me, me trate, trata-me, escreva-me, me escreva, responda em, responde em, " +
			"fala comigo",
	},
	{
		code: "nl",
		rules: "nooit, altijd, verboden, niemand, blijf af, blijft zoals, blijven zoals, afblijven, " +
			"niet aankomen, onder geen beding, vanaf nu, voortaan, elke keer, zoals het is",
		duties: "moet, moeten, mag niet, mogen niet, hoogstens, minstens, verplicht, alleen",
		wishes: "liever, graag, ik wil, voorkeur, ik hou van, ik houd van",
		owning: "mijn, onze, wij, wij hebben",
		decisions: "besloten, gekozen, afgesproken, ik kies, we kiezen, kiezen voor, we nemen, ik neem, " +
			"we houden, we gebruiken, in plaats van, we blijven bij",
		reasons: "omdat, zodat, vanwege",
		pending: "nog niet, nog open, onduidelijk, wachten op, wacht op, weten we niet, nog te, geen idee",
		notes:   "belangrijk, let op, onthoud",
		changes: "nageteld, verkeerd gelezen, verteld heb, verlezen, correctie, vergist, ik had het mis, " +
			"verkeerd, verzet naar, verplaatst, wordt nu, klopt niet, eigenlijk",
		denials:  "niet, geen, niets",
		numbers:  "twee, drie, vier, vijf, zes, zeven, negen, tien, twaalf, twintig, dertig, honderd, duizend",
		left:     "resterende, overige, de rest, de andere, nog over, resten",
		failures: "fout, mislukt, verlopen, geweigerd, niet gevonden",
		asking: "kun je, kan je, zou je, kijk, bekijk, laat zien, controleer, lees, open, ga door, zoek, maak, " +
			"en de, en het, wat, welke, hoe, waar, wanneer, waarom, alsjeblieft",
		announcing:  "ik ga, hier is",
		introducing: "ik ben, ik heb",
		fillers:     "en nu dan dank bedankt goed oké volgende",
		replies:     "noem me, spreek me, schrijf me, antwoord in",
	},
	{
		code: "pl",
		rules: "nigdy, zawsze, zabronione, zabroniony, nikt, nie ruszać, nie dotykać, pod żadnym pozorem, " +
			"zostaje tak, zostają tak, bez zmian, od teraz, za każdym razem, zakaz",
		duties: "musi, muszą, nie wolno, nie może, trzeba, należy, najwyżej, co najmniej, tylko, wyłącznie",
		wishes: "wolę, wolałbym, wolałabym, lubię, chcę, chciałbym, chciałabym",
		owning: "mój, moja, nasz, nasza, mamy",
		decisions: "zdecydow*, wybra*, wybieram, wybieramy, ustali*, zostajemy przy, bierzemy, biorę, zamiast, " +
			"przechodzimy na, używamy",
		reasons: "ponieważ, bo, dlatego, żeby, gdyż",
		pending: "jeszcze nie, nie wiadomo, nie wiemy, do ustalenia, do potwierdzenia, czekamy, czekam, " +
			"nierozstrzygnięte",
		notes: "ważne, uwaga, pamiętaj",
		changes: "policzyłem jeszcze raz, policzyłam jeszcze raz, źle przeczytałem, źle przeczytałam, poprawka, " +
			"sprostowanie, pomyliłem, pomyliłam, mój błąd, jednak, przesunięte, przełożone, zmiana",
		denials:  "nie, żaden, żadna",
		numbers:  "dwa, dwie, trzy, cztery, pięć, sześć, siedem, osiem, dziewięć, dziesięć, dwadzieścia",
		left:     "zostało, pozostało, pozostałe, pozostałych, zostały, reszta",
		failures: "błąd, błędy, niepowodzenie, wygasł, odmowa, nie znaleziono, nie można",
		asking: "czy możesz, możesz, pokaż, sprawdź, zobacz, przeczytaj, otwórz, dalej, znajdź, zrób, co, jaki, " +
			"jaka, jak, gdzie, kiedy, dlaczego, proszę",
		announcing:  "zaraz, oto",
		introducing: "jestem",
		fillers:     "i teraz potem dzięki dobrze więc następnie",
		replies:     "mów do mnie, mów mi, pisz do mnie, pisz mi, zwracaj się, odpisuj",
	},
}
