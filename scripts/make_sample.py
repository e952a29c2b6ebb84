"""Write the text sample and the small tokenizer that ship in `conf/data/sample/`.

Both are this project's own work: every sentence below was written for it, and the tokenizer is trained on nothing else.
The script is deterministic, so `python scripts/make_sample.py` run again changes nothing.
"""

import argparse
import json
import random
from pathlib import Path

NUM_PARAGRAPHS = 600
VOCAB_SIZE = 2048
SEED = 20240521
SPECIAL_TOKENS = ("<pad>", "<s>", "</s>")
SAMPLE_DIR = Path(__file__).resolve().parents[1] / "conf" / "data" / "sample"

_CHOICES = {
    "person": "Anna|Bertil|Clara|David|Edith|Felix|Greta|Henrik|Ida|Jonas|Karin|Lukas|Maja|Nils|Olga|Per|Ruth|Sven",
    "friend": "Agnes|Björn|Cecilia|Disa|Emil|Frida|Gustav|Hedda|Isak|Josef|Kerstin|Lars|Mattias|Nora|Oskar|Pia",
    "month": "January|February|March|April|May|June|July|August|September|October|November|December",
    "weekday": "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday",
    "weather": "a thin rain|a cold wind|a low fog|a bright sun|a wet snow|a warm haze|a clear frost|a slow thaw",
    "number": "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty",
    "colour": "red|blue|green|yellow|white|grey|black|brown",
    "tool": "hammer|wrench|lantern|ladder|brush|saw|rope|file|level|chisel",
    "fish": "herring|cod|perch|pike|mackerel|salmon|eel",
    "bread": "rye|wheat|barley|oat|sourdough|potato",
    "plant": "beans|onions|carrots|lettuce|potatoes|radishes|peas|cabbage",
    "part": "fan|cable|power supply|switch|memory card|heat sink|pump|network card",
    "subject": "arithmetic|geography|history|reading|drawing|music|chemistry",
    "star": "Vega|Capella|Arcturus|Deneb|Altair|Rigel|Spica",
}
WORDS = {slot: choices.split("|") for slot, choices in _CHOICES.items()}
"""Slot of a sentence -> words that may fill it."""

Theme = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""Openings, middles and endings; a paragraph takes one opening, two or three middles in order, and one ending."""

THEMES: tuple[Theme, ...] = (
    (
        (
            "On the first {weekday} of {month} the harbour woke before the sun, and {person} was already on the pier.",
            "{person} had kept the small harbour for {number} years and knew every boat by the sound of its engine.",
            "The {colour} boat came in late that morning, with {weather} behind it and a full hold of {fish}.",
            "Nobody expected the ferry in {month}, but {person} lit the lamp at the end of the pier all the same.",
        ),
        (
            "The nets were wet and heavy, so {friend} came down from the village to help.",
            "They counted {number} boxes of {fish}, and then they counted them again, because the price had gone up.",
            "The tide turned at noon, and the water in the basin went from green to grey.",
            "A gull sat on the {colour} crane and watched them work, as if it were paid to do so.",
            "There was a crack in the old rudder, and somebody had to fetch a {tool} from the shed.",
        ),
        (
            "By evening the pier was empty again, and only the smell of tar and {fish} was left.",
            "When the work was done they drank coffee from tin cups and said very little.",
            "{person} wrote the numbers into the book, closed it, and went home along the shore.",
            "It had been a good day, and a good day in {month} is worth {number} in the summer.",
        ),
    ),
    (
        (
            "The bakery on the corner opens at six, but the oven has been hot since three.",
            "{person} bakes {number} loaves of {bread} bread on a {weekday}, and twice as many before a holiday.",
            "In {month} the flour came from a new mill, and {person} could feel the difference at once.",
            "{person} learned to bake from {friend}, who had learned it in a kitchen with an earth floor.",
        ),
        (
            "The dough has to rest, and while it rests nobody is allowed to slam the door.",
            "A good crust needs steam, so there is always a pan of water at the bottom of the oven.",
            "If the dough is too wet, it spreads; if it is too dry, it tears; the rest is patience.",
            "{friend} weighs the salt on an old brass scale and trusts it more than any clock.",
            "The {bread} loaves go in last, because they like an oven that has begun to cool.",
        ),
        (
            "At seven the first customers stand in {weather} and look through the window.",
            "When the last loaf is sold, a small {colour} sign is turned in the window, and the street is quiet.",
            "Ask for the recipe and you will be told, but you will not be told how long to wait.",
            "What is left over in the evening goes to the neighbours, and there is never much left over.",
        ),
    ),
    (
        (
            "Behind the house {person} kept a garden of {number} beds, and every bed had a name.",
            "In {month} the ground was still hard, and {person} could only stand at the fence and make plans.",
            "The {plant} came up early that year, after a week of {weather} that nobody had asked for.",
            "{friend} said that {plant} would never grow on that slope, and {person} planted them on purpose.",
        ),
        (
            "First you loosen the soil, then you take out the stones, and then you find more stones.",
            "They sowed the {plant} in straight rows, with a string and two sticks to guide the hand.",
            "The hens got in through a hole in the fence and ate the best of the {plant}.",
            "Water in the morning, never at noon, and only as much as the roots can drink.",
            "Under the {colour} bucket lived a toad, and nobody was allowed to move the bucket.",
        ),
        (
            "In the autumn there were {number} baskets of {plant}, and every neighbour was given one.",
            "A garden teaches you to wait, and then it teaches you to hurry.",
            "When the frost came they covered the beds with straw and went inside to read.",
            "{person} wrote down what had failed, because that is the part one forgets.",
        ),
    ),
    (
        (
            "The machine room is on the ground floor, and on a {weekday} in {month} it was far too warm.",
            "{person} looked at the chart for {number} minutes before saying anything at all.",
            "One of the nodes had stopped during the night, and {friend} was sure that it was the {part}.",
            "The run had started on {weekday}, and by now the loss should have fallen much further.",
        ),
        (
            "They changed one thing at a time and wrote down each result, even the dull ones.",
            "The {part} was replaced, the logs were read from the top, and still the step time did not change.",
            "A short test with {number} steps told them more than the long run had told them in a day.",
            "The numbers were too good, so {person} asked what had been left out of the measurement.",
            "On the small machine everything worked, which meant that the fault was in the part that differed.",
        ),
        (
            "In the end it was a {part} that nobody had looked at, and the repair took {number} minutes.",
            "They ran it three times, compared the medians, and only then believed it.",
            "{friend} put a note on the door: measure first, then argue.",
            "The next morning the curve was smooth, and the room was quiet apart from the fans.",
        ),
    ),
    (
        (
            "The library has one large window, and in {month} the light falls on the shelf with the old maps.",
            "{person} returned a book that had been missing for {number} years and expected to be scolded.",
            "Every {weekday} the children come to the library, and {friend} reads to them from the {colour} chair.",
            "When {weather} came over the hill, the library filled with people who wanted to read about the sea.",
        ),
        (
            "The catalogue is kept on cards, and the cards are kept in drawers that stick when it rains.",
            "Somebody had written a question in the margin, and somebody else had answered it in pencil.",
            "There are {number} books about {subject}, and all of them disagree about the first chapter.",
            "A book that nobody borrows is moved to the lower shelf, but it is never thrown away.",
            "{friend} knows where everything is and will not tell you before you have looked.",
        ),
        (
            "At closing time the lamp is turned down, and the last reader always has one more page.",
            "{person} took home {number} books and a promise to bring them back before {month}.",
            "It is a small library, but nobody has yet come to the end of it.",
            "Outside it was already dark, and the street smelled of {weather}.",
        ),
    ),
    (
        (
            "The train from the coast is due at noon, and on a {weekday} in {month} it even arrives at noon.",
            "{person} has been a guard on the northern line for {number} years and has been late only twice.",
            "The signal at the bridge was {colour} when it should have been green, and so the train stood still.",
            "{person} and {friend} sat in the last carriage, with {weather} running down the windows.",
        ),
        (
            "There were {number} stops between the valley and the sea, and the child could name them all.",
            "The conductor walked through the train with a {tool} in one hand and a cup in the other.",
            "Beyond the tunnel the land opened, and one could see as far as the lighthouse.",
            "An old man was asleep under his hat and had the ticket of yesterday in his pocket.",
            "They waited for the other train to pass, because the line has only one track here.",
        ),
        (
            "At the last stop everybody got off, and the engine stood there ticking as it cooled.",
            "{friend} was on the platform with a {colour} umbrella, exactly as agreed.",
            "A timetable is a promise, said {person}, and a promise should be short.",
            "They missed the bus, of course, and walked the last {number} miles along the river.",
        ),
    ),
    (
        (
            "The school has {number} pupils, one stove, and a clock that runs fast in {month}.",
            "On {weekday} there was {subject}, and {person} had not opened the book.",
            "{friend} teaches {subject} in the morning and {subject} in the afternoon, and prefers the afternoon.",
            "The first question of the day was why the {weather} always comes from the west.",
        ),
        (
            "Nobody knew the answer, so they went outside to look.",
            "{person} drew a map on the board, with a {colour} line for the river and a cross for the school.",
            "If {number} apples cost as much as one loaf, the teacher asked, who has been cheated?",
            "They learned the poem line by line, first loudly, then softly, then without the book.",
            "The youngest pupil had counted to a thousand at home and wanted it written down.",
        ),
        (
            "When the bell rang, no one stood up, and that was the best part of the year.",
            "A wrong answer is useful, said {friend}, as long as you can say why you believed it.",
            "The map is still on the wall, although the river has moved since.",
            "They went home in {weather}, and {person} explained the whole lesson to the dog.",
        ),
    ),
    (
        (
            "From the hill above the town {person} could see {star} even in {month}.",
            "The observatory is a shed with a sliding roof, and the roof needs {number} people and a {tool}.",
            "On a clear {weekday} {person} and {friend} carried the telescope up the path.",
            "For {number} nights there had been {weather}, and on the next night the sky was open.",
        ),
        (
            "They let the mirror cool first, because warm glass makes the stars tremble.",
            "{star} stood low over the trees, and the light took many years to reach them.",
            "{friend} held the {colour} torch and read the numbers, and {person} wrote them down.",
            "A single measurement means little; {number} of them, made in the same way, mean something.",
            "Far below a dog barked, and one window after another went dark in the town.",
        ),
        (
            "Towards morning the dew settled on the notes, and they packed up without a word.",
            "The curve that they drew was not smooth, but it was honest.",
            "{person} looked once more at {star}, with the naked eye, just to say good night.",
            "In {month} they will do it again, and then the two curves can be compared.",
        ),
    ),
)


def write_paragraph(rng: random.Random) -> str:
    """One paragraph on one line; the same two people stay in it from the first sentence to the last."""
    openings, middles, endings = rng.choice(THEMES)
    chosen = sorted(rng.sample(range(len(middles)), rng.choice((2, 3))))
    sentences = [rng.choice(openings), *(middles[index] for index in chosen), rng.choice(endings)]
    people = {name: rng.choice(WORDS[name]) for name in ("person", "friend")}
    return " ".join(_fill_slots(sentence, people, rng) for sentence in sentences)


def _fill_slots(sentence: str, people: dict[str, str], rng: random.Random) -> str:
    filled = sentence.format_map({name: rng.choice(words) for name, words in WORDS.items()} | people)
    return filled[0].upper() + filled[1:]


def write_text(folder: Path) -> Path:
    """Write `text.txt`: one paragraph a line, UTF-8."""
    rng = random.Random(SEED)
    path = folder / "text.txt"
    path.write_text("".join(write_paragraph(rng) + "\n" for _ in range(NUM_PARAGRAPHS)), encoding="utf-8")
    return path


def write_tokenizer(folder: Path, text: Path) -> Path:
    """Train a byte-level BPE tokenizer, which can encode any text, and write it in Hugging Face's format."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(text.read_text(encoding="utf-8").splitlines(), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    target = folder / "tokenizer"
    target.mkdir(exist_ok=True)
    tokenizer.save(str(target / "tokenizer.json"), pretty=False)
    pad, bos, eos = SPECIAL_TOKENS
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": pad, "bos_token": bos, "eos_token": eos}
    (target / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    return target


def main() -> None:
    """Write both into `--folder`, which defaults to the place that ships."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=SAMPLE_DIR)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer(folder, write_text(folder))


if __name__ == "__main__":
    main()
