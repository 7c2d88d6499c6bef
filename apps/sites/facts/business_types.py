"""Types of schema.org that are businesses, and the industry that each one names."""

import re


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# They do not say what a business does.
GENERIC = _names("Organization LocalBusiness Corporation OnlineBusiness ProfessionalService Store")
# They name a branch of the economy. A narrower type beside them says more.
BROAD = _names(
    "AutomotiveBusiness EducationalOrganization EmergencyService EntertainmentBusiness"
    " FinancialService FoodEstablishment GovernmentOffice GovernmentOrganization"
    " HealthAndBeautyBusiness HomeAndConstructionBusiness LegalService LodgingBusiness"
    " MedicalBusiness MedicalOrganization PerformingGroup SportsActivityLocation"
    " SportsOrganization OnlineStore Project NGO"
)
NARROW = _names(
    # Organisations
    "Airline Consortium Cooperative FundingScheme FundingAgency ResearchProject"
    " LibrarySystem NewsMediaOrganization PoliticalParty ResearchOrganization"
    " SearchRescueOrganization WorkersUnion CollegeOrUniversity ElementarySchool HighSchool"
    " MiddleSchool Preschool School DanceGroup MusicGroup TheaterGroup SportsTeam"
    # Food and lodging
    " Bakery BarOrPub Brewery CafeOrCoffeeShop Distillery FastFoodRestaurant IceCreamShop"
    " Restaurant Winery BedAndBreakfast Campground Hostel Hotel Motel Resort SkiResort"
    " VacationRental RVPark"
    # Cars
    " AutoBodyShop AutoDealer AutoPartsStore AutoRental AutoRepair AutoWash GasStation"
    " MotorcycleDealer MotorcycleRepair"
    # Home and construction
    " Electrician GeneralContractor HVACBusiness HousePainter Locksmith MovingCompany Plumber"
    " RoofingContractor"
    # Health and beauty
    " BeautySalon DaySpa HairSalon HealthClub NailSalon TattooParlor CommunityHealth Dentist"
    " Dermatology DietNutrition DiagnosticLab Emergency Geriatric Gynecologic Hospital"
    " MedicalClinic Midwifery Nursing Obstetric Oncologic Optician Optometric Otolaryngologic"
    " Pediatric Pharmacy Physician IndividualPhysician PhysiciansOffice Physiotherapy"
    " PlasticSurgery Podiatric PrimaryCare Psychiatric PublicHealth VeterinaryCare"
    " CovidTestingFacility"
    # Services
    " AccountingService AnimalShelter ArchiveOrganization Attorney AutomatedTeller"
    " BankOrCreditUnion ChildCare DryCleaningOrLaundry EmploymentAgency FireStation InsuranceAgency"
    " InternetCafe Library Notary PoliceStation PostOffice RadioStation RealEstateAgent"
    " RecyclingCenter SelfStorage ShoppingCenter TelevisionStation TouristInformationCenter"
    " TravelAgency"
    # Leisure
    " AdultEntertainment AmusementPark ArtGallery Casino ComedyClub MovieTheater NightClub"
    " BowlingAlley ExerciseGym GolfCourse PublicSwimmingPool SportsClub StadiumOrArena"
    " TennisComplex Aquarium EventVenue Museum MusicVenue PerformingArtsTheater Zoo"
    # Stores
    " BikeStore BookStore ClothingStore ComputerStore ConvenienceStore DepartmentStore"
    " ElectronicsStore Florist FurnitureStore GardenStore GroceryStore HardwareStore HobbyShop"
    " HomeGoodsStore JewelryStore LiquorStore MensClothingStore MobilePhoneStore MovieRentalStore"
    " MusicStore OfficeEquipmentStore OutletStore PawnShop PetStore ShoeStore SportingGoodsStore"
    " TireShop ToyStore WholesaleStore"
)
BUSINESS_TYPES = GENERIC | BROAD | NARROW

# Where the words of the name are not what people say.
_PHRASES = {
    "AccountingService": "accounting firm",
    "ArchiveOrganization": "archive",
    "AutoBodyShop": "auto body shop",
    "AutoDealer": "car dealer",
    "AutomatedTeller": "cash machine",
    "AutoRental": "car rental company",
    "AutoRepair": "auto repair shop",
    "AutoWash": "car wash",
    "BankOrCreditUnion": "bank",
    "BarOrPub": "bar",
    "BikeStore": "bike shop",
    "CafeOrCoffeeShop": "coffee shop",
    "ChildCare": "child care center",
    "CollegeOrUniversity": "university",
    "CommunityHealth": "community health center",
    "Dermatology": "dermatology clinic",
    "DietNutrition": "nutrition counselor",
    "DryCleaningOrLaundry": "dry cleaner",
    "EducationalOrganization": "school",
    "Emergency": "emergency clinic",
    "ExerciseGym": "gym",
    "FinancialService": "financial services company",
    "FoodEstablishment": "food business",
    "Geriatric": "geriatric clinic",
    "GovernmentOrganization": "government agency",
    "Gynecologic": "gynecology practice",
    "HVACBusiness": "HVAC company",
    "HealthAndBeautyBusiness": "health and beauty business",
    "IndividualPhysician": "doctor",
    "LegalService": "law firm",
    "LodgingBusiness": "accommodation",
    "MedicalBusiness": "medical practice",
    "MedicalOrganization": "medical practice",
    "MensClothingStore": "men's clothing store",
    "Midwifery": "midwifery practice",
    "NGO": "non-profit organization",
    "Nursing": "nursing service",
    "Obstetric": "obstetrics practice",
    "Oncologic": "oncology clinic",
    "Optometric": "optometrist",
    "Otolaryngologic": "ear, nose and throat clinic",
    "Pediatric": "pediatric practice",
    "PerformingArtsTheater": "theater",
    "Physician": "doctor",
    "PhysiciansOffice": "doctor's office",
    "Physiotherapy": "physiotherapy practice",
    "PlasticSurgery": "plastic surgery clinic",
    "Podiatric": "podiatry practice",
    "PrimaryCare": "primary care practice",
    "Psychiatric": "psychiatric clinic",
    "PublicHealth": "public health center",
    "RVPark": "RV park",
    "RealEstateAgent": "real estate agency",
    "SelfStorage": "self storage facility",
    "SportsActivityLocation": "sports venue",
    "StadiumOrArena": "stadium",
    "VeterinaryCare": "veterinary clinic",
}
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def is_business(types: list[str]) -> bool:
    return not BUSINESS_TYPES.isdisjoint(types)


def industry_type(types: list[str]) -> str | None:
    """The type that says most about what a business does. A type that is not known counts if it
    stands beside one of a business."""
    if not is_business(types):
        return None
    telling = [name for name in types if name not in GENERIC and _WORDS.search(name)]
    narrow = [name for name in telling if name not in BROAD]
    known = [name for name in narrow if name in NARROW]
    return next(iter([*known, *narrow, *telling]), None)


def phrase_of(name: str) -> str:
    """`HairSalon` → `hair salon`."""
    words = (
        word if word.isupper() and len(word) > 1 else word.lower() for word in _WORDS.findall(name)
    )
    return _PHRASES.get(name) or " ".join(words)


INDUSTRY_PHRASES = frozenset(map(phrase_of, NARROW))
